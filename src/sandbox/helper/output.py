"""What a child prints: read while it lives, head and tail kept in constant memory."""

import os
import select
import signal
import time

from frames import Refused
from limits import KIB, KILL_GRACE, LEFTOVER_GRACE, MAX_SPILL
from text import printable


class Capture:
    """Head and tail of an output in constant memory; the whole goes to a spill file, capped."""

    def __init__(self, workspace, name, limit):
        self.workspace, self.name = workspace, name
        self.half = max(1, limit // 2)
        self.head, self.tail = bytearray(), bytearray()
        self.total = 0
        self.spill, self.spilled, self.spill_path = None, 0, None

    def feed(self, chunk):
        self.total += len(chunk)
        view = memoryview(chunk)
        room = self.half - len(self.head)
        if room > 0:
            self.head += view[:room]
            view = view[room:]
        if not len(view):
            return
        if self.spill is None and len(self.tail) + len(view) > self.half:
            self.open_spill()
        self.write_spill(view)
        if len(view) >= self.half:
            self.tail = bytearray(view[-self.half:])
        else:
            self.tail += view
            if self.spill is not None and len(self.tail) > 2 * self.half:
                del self.tail[:-self.half]

    def open_spill(self):
        self.spill = False  # tried once; without a spill file the call goes on
        try:
            with self.workspace.walk(b".fleet/spill/" + self.name.encode(), make=True) as place:
                try:
                    os.unlink(place.name, dir_fd=place.fd)  # an earlier helper's
                except FileNotFoundError:
                    pass
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self.spill = os.open(place.name, flags, 0o600, dir_fd=place.fd)
            self.spill_path = ".fleet/spill/" + self.name
            self.write_spill(memoryview(bytes(self.head)))
            self.write_spill(memoryview(bytes(self.tail)))
        except (OSError, Refused):
            pass

    def write_spill(self, view):
        if self.spill is None or self.spill is False:
            return
        view = view[:MAX_SPILL - self.spilled]
        try:
            while len(view):
                done = os.write(self.spill, view)
                self.spilled += done
                view = view[done:]
        except OSError:
            self.spilled = MAX_SPILL  # disk full: what is there stays

    def close(self):
        if self.spill not in (None, False):
            os.close(self.spill)
            self.spill = False

    def result(self):
        """The body, and the reply fields that tell how to read it."""
        self.close()
        tail = self.tail[-self.half:]
        body = bytes(self.head + tail)
        dropped = self.total - len(body)
        fields = {"dropped_bytes": dropped, "spill_path": self.spill_path if dropped else None,
                  "head_len": len(self.head) if dropped else len(body)}
        return fields, body


def read_some(fd):
    """What a pipe holds now: bytes, b"" at its end, None when there is nothing yet."""
    try:
        return os.read(fd, 64 * KIB)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def drain(fd, feed, seconds):
    """Reads a pipe to its end, but no longer than this. Tells whether the end came."""
    until = time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        if left <= 0:
            return False
        select_readable([fd], left)
        chunk = read_some(fd)
        if chunk == b"":
            return True
        if chunk:
            feed(chunk)


def select_readable(fds, seconds, writable=()):
    """The descriptors that are ready, by poll: numbers above 1023 are no problem."""
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    for fd in writable:
        poller.register(fd, select.POLLOUT)
    return {fd for fd, _ in poller.poll(max(0, min(int(seconds * 1000) + 1, 3600000)))}


def supervise(call, child, feeds, kill_grace=KILL_GRACE):
    """Feeds on a child's pipes until it has ended. At its deadline, or when the call is cancelled,
    the group is asked to end and then killed. Tells whether the time was over."""
    open_pipes = dict(feeds)
    kill_at, timed_out = None, False
    while child.status is None:
        now = time.monotonic()
        if kill_at is None and (call.cancelled or now >= call.deadline):
            timed_out = not call.cancelled
            kill_at = now + kill_grace
            call.processes.signal_group(child, signal.SIGTERM)
            call.processes.signal_group(child, signal.SIGCONT)
        elif kill_at is not None and now >= kill_at:
            call.processes.signal_group(child, signal.SIGKILL)
            kill_at = now + kill_grace
        until = call.deadline if kill_at is None else kill_at
        ready = select_readable([call.wake.read_end, *open_pipes], until - now)
        if call.wake.read_end in ready:
            call.wake.clear()
        for fd in ready & set(open_pipes):
            chunk = read_some(fd)
            if chunk == b"":
                del open_pipes[fd]
            elif chunk:
                open_pipes[fd](chunk)
    # Pipes may be held open by what the command left behind: a short grace, then that is killed.
    for fd in list(open_pipes):
        if drain(fd, open_pipes[fd], LEFTOVER_GRACE):
            del open_pipes[fd]
    call.processes.finish(call.owner)
    for fd, feed in open_pipes.items():
        drain(fd, feed, 1.0)
    return timed_out

class Beginning:
    """The first bytes of an output."""

    def __init__(self, limit):
        self.limit, self.data = limit, bytearray()

    def feed(self, chunk):
        self.data += chunk[:self.limit - len(self.data)]

    def text(self):
        return printable(bytes(self.data))

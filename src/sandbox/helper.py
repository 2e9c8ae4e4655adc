"""fleet's helper: the first process of a sealed container.

It connects out once to fleet's socket, proves itself with a token and serves calls: commands,
Python cells, files, the packing of commits. It is trusted code in a hostile place: whatever it
reads from its children, the workspace or /proc may be forged, and nothing of that may end it, fill
its memory or lead it out of the workspace. When its connection ends it ends, and all with it.

Started as `python3 -ISu helper.py [directory of socket and token]`; with `--kernel` the same file
is the interpreter in which cells run. Python 3.8 or newer, standard library only.
"""

import ast
import errno
import fcntl
import hashlib
import json
import linecache
import os
import queue
import re
import secrets
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
import types

KIB, MIB = 1024, 1024 * 1024
MAX_HEADER = MIB
MAX_REQUEST_BODY = 64 * MIB
MAX_IN_FLIGHT = 256
WORKERS = 16
DEFAULT_OUTPUT = 128 * KIB
MAX_OUTPUT = 4 * MIB
MAX_SPILL = 8 * MIB
MAX_READ = 128 * KIB
MAX_HASHED = 256 * MIB
MAX_WRITE = 64 * MIB
MAX_EDIT = 16 * MIB
MAX_NAMES = 10000
NAMES_BUDGET = 900 * KIB
TEXT_LIMIT = 32 * KIB
VAR_LIMIT = 16 * KIB
VARS_BUDGET = 512 * KIB
MAX_KERNEL_REPLY = 8 * MIB
MAX_FIGURES, MAX_FIGURE = 20, 10 * MIB
KILL_GRACE = 2.0
LEFTOVER_GRACE = 0.1
UNKILLABLE = 5.0
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# fleet's own directories: they stay out of the agent's commits.
OWN_DIRECTORIES = (".fleet", "figures", "subagents")


class Refused(Exception):
    """A call that is answered with an error of this kind."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def log(message):
    """Says why the helper ends; nobody reads more than that."""
    try:
        os.write(2, ("fleet helper: %s\n" % message).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def printable(raw):
    """Text of bytes that need not be UTF-8: what is not becomes \\xNN."""
    return raw.decode("utf-8", "backslashreplace")


def clean(text):
    """Text without lone surrogates, which JSON on the other side refuses."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def bounded(text, limit):
    """At most about `limit` bytes of a text as JSON writes it: its beginning and its end."""
    text = clean(text)
    if len(json.dumps(text, ensure_ascii=False).encode()) <= limit + 2:
        return text
    # A character takes at most six bytes once escaped.
    keep = max(1, limit // 12)
    return "%s\n[... %d characters left out ...]\n%s" % (
        text[:keep], max(0, len(text) - 2 * keep), text[-keep:])


# --- Frames ------------------------------------------------------------------------------------


class Connection:
    """The one stream to fleet. A frame that breaks the protocol ends the helper."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.sending = threading.Lock()

    def exactly(self, length):
        data = bytearray(length)
        view, filled = memoryview(data), 0
        while filled < length:
            got = self.socket.recv_into(view[filled:])
            if got == 0:
                raise EOFError("the connection ended")
            filled += got
        return data

    def receive(self):
        header_length, body_length = struct.unpack(">II", self.exactly(8))
        if not 1 <= header_length <= MAX_HEADER or body_length > MAX_REQUEST_BODY:
            raise ValueError("a frame of %d and %d bytes" % (header_length, body_length))
        header = json.loads(self.exactly(header_length).decode("utf-8"))
        if not isinstance(header, dict):
            raise ValueError("a header that is no object")
        return header, self.exactly(body_length)

    def send(self, header, body=b""):
        """Sends a frame; the body is bytes, or a (file, size) that is streamed."""
        raw = json.dumps(header, ensure_ascii=False).encode("utf-8", "backslashreplace")
        if len(raw) > MAX_HEADER:
            raise Refused("too_large", "the reply has %d bytes of header" % len(raw))
        size = body[1] if isinstance(body, tuple) else len(body)
        with self.sending:
            self.socket.sendall(struct.pack(">II", len(raw), size) + raw)
            if isinstance(body, tuple):
                self.stream(*body)
            elif size:
                self.socket.sendall(body)

    def stream(self, file, size):
        """Sends `size` bytes whatever became of the file; its hash tells the host the rest."""
        left = size
        while left:
            wanted = min(left, 256 * KIB)
            try:
                chunk = file.read(wanted) or bytes(wanted)
            except OSError:
                chunk = bytes(wanted)
            self.socket.sendall(chunk)
            left -= len(chunk)


def watch(connection, processes):
    """Ends the helper the moment its connection does, whatever its other threads wait for."""
    hung_up = getattr(select, "POLLRDHUP", 0x2000) | select.POLLHUP | select.POLLERR
    poller = select.poll()
    poller.register(connection.socket.fileno(), hung_up)
    while True:
        try:
            if poller.poll():
                break
        except InterruptedError:
            continue
    if os.getpid() != 1:  # the kernel does this for the first process of a container
        processes.kill_roots()
    os._exit(0)


# --- Processes ---------------------------------------------------------------------------------


class Wake:
    """A pipe that ends another thread's poll. Closing it is safe against late signals."""

    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        os.set_blocking(self.write_end, False)
        self.lock = threading.Lock()
        self.closed = False

    def set(self):
        with self.lock:
            if not self.closed:
                try:
                    os.write(self.write_end, b"!")
                except BlockingIOError:
                    pass

    def clear(self):
        try:
            os.read(self.read_end, 4096)
        except BlockingIOError:
            pass

    def close(self):
        with self.lock:
            self.closed = True
            os.close(self.read_end)
            os.close(self.write_end)


class Child:
    """A process that the helper started; its status is there once it was reaped."""

    def __init__(self, pid, wake):
        self.pid = pid
        self.wake = wake
        self.status = None

    @property
    def exit_code(self):
        if os.WIFSIGNALED(self.status):
            return 128 + os.WTERMSIG(self.status)
        return os.WEXITSTATUS(self.status)

    def ended(self):
        """How it ended, in words."""
        if os.WIFSIGNALED(self.status):
            return "signal %d" % os.WTERMSIG(self.status)
        return "exit status %d" % os.WEXITSTATUS(self.status)


class Processes:
    """Starts, reaps and kills. All waiting is done here, since the helper also gets strangers'
    orphans to reap and two waiters would steal each other's exits."""

    def __init__(self):
        # Starting and sweeping exclude each other: between fork and exec a child belongs to nobody.
        self.lock = threading.Lock()
        self.started = threading.Condition(self.lock)
        self.children = {}
        self.roots = {}
        threading.Thread(target=self.reap, daemon=True).start()

    def spawn(self, owner, argv, wake, cwd, env=None, **pipes):
        """Starts a program in its own session, marked as its owner's."""
        environment = {"PATH": PATH, "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}
        environment.update(env or {}, FLEET_CALL=owner)
        with self.lock:
            try:
                program = subprocess.Popen(
                    argv, cwd=cwd, env=environment, stdin=pipes.pop("stdin", subprocess.DEVNULL),
                    start_new_session=True, **pipes)
            except OSError as error:
                kind = "too_large" if error.errno == errno.E2BIG else "io"
                raise Refused(kind, "cannot start %s: %s" % (argv[0], error.strerror))
            program.returncode = 0  # the reaper waits for it, not Popen
            child = Child(program.pid, wake)
            self.children[child.pid] = child
            self.roots.setdefault(owner, set()).add(child.pid)
            self.started.notify()
            return child

    def reap(self):
        while True:
            try:
                # Looks without taking: taking happens under the lock, after registration.
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                with self.lock:
                    if not self.children:
                        self.started.wait(1.0)
                continue
            except InterruptedError:
                continue
            with self.lock:
                try:
                    pid, status = os.waitpid(seen.si_pid, os.WNOHANG)
                except ChildProcessError:
                    continue
                child = self.children.pop(pid, None) if pid else None
                if child is not None:
                    child.status = status
                    child.wake.set()

    def signal_group(self, child, number):
        with self.lock:
            if child.status is None:
                send_signal(os.killpg, child.pid, number)

    def kill_roots(self):
        for roots in list(self.roots.values()):
            for pid in list(roots):
                send_signal(os.killpg, pid, signal.SIGKILL)

    def finish(self, owner):
        """Kills whatever is left of a call, in new sessions too, and waits until it is gone.

        Victims are its own processes and those that nobody owns any more. They are stopped before
        they are killed, so that a fork bomb holds still."""
        give_up = time.monotonic() + UNKILLABLE
        pause = 0.0005
        while True:
            with self.lock:
                victims = self.owned(owner)
                fresh = dict(victims)
                while fresh:
                    for pid, state in fresh.items():
                        if state != "Z":
                            send_signal(os.kill, pid, signal.SIGSTOP)
                    known = set(victims)
                    victims.update(self.owned(owner))
                    fresh = {pid: victims[pid] for pid in set(victims) - known}
                    if time.monotonic() > give_up:
                        break
                for pid, state in victims.items():
                    if state != "Z":
                        send_signal(os.kill, pid, signal.SIGKILL)
                if not victims:
                    self.roots.pop(owner, None)
                    return
            if time.monotonic() > give_up:
                # Better no container than one in which a call that is over still runs.
                log("processes of call %s cannot be killed" % owner)
                os._exit(1)
            time.sleep(pause)
            pause = min(pause * 2, 0.02)

    def owned(self, owner):
        """The helper's descendants that are this owner's or nobody's, with their states."""
        me, table = os.getpid(), process_table()
        below = {}
        for pid in table:
            chain, at = [], pid
            while at in table and at != me and len(chain) < 10000:
                chain.append(at)
                at = table[at][0]
            if at == me and pid != me:
                below[pid] = chain
        by_root = {pid: name for name, pids in self.roots.items() for pid in pids}
        victims = {}
        for pid, chain in below.items():
            _, session, state = table[pid]
            if state == "Z" and table[pid][0] != me:
                continue  # its parent's to reap; it goes with it
            name = next((by_root[at] for at in chain if at in by_root), by_root.get(session))
            if name is None:
                name = mark(pid)
            if name == owner or name not in self.roots:
                victims[pid] = state
        return victims

    def running(self, names):
        """Whether a descendant's program has one of these names."""
        return any(name.startswith(names) for name in map(program_name, process_table()))


def send_signal(how, pid, number):
    try:
        how(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def process_table():
    """Every process: its parent, session and state."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry, "rb") as file:
                    # The name in brackets may itself hold brackets and blanks.
                    fields = file.read().rsplit(b")", 1)[1].split()
                table[int(entry)] = (int(fields[1]), int(fields[3]), fields[0].decode("ascii"))
            except (OSError, IndexError, ValueError):
                pass
    return table


def program_name(pid):
    try:
        with open("/proc/%d/comm" % pid, "rb") as file:
            return printable(file.read().strip())
    except OSError:
        return ""


def mark(pid):
    """The call that a process says it belongs to. Forged, it only chooses when the process dies."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            for entry in file.read(256 * KIB).split(b"\0"):
                if entry.startswith(b"FLEET_CALL="):
                    return printable(entry[len(b"FLEET_CALL="):])
    except OSError:
        pass
    return None


# --- Output ------------------------------------------------------------------------------------


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


# --- Files -------------------------------------------------------------------------------------


class Place:
    """A directory's descriptor and a name in it (None: the directory itself)."""

    def __init__(self, fd, name):
        self.fd, self.name = fd, name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def lstat(self):
        try:
            if self.name is None:
                return os.fstat(self.fd)
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Workspace:
    """The only directory in which file calls work. No link is followed, at no component."""

    def __init__(self, path):
        self.path = os.fsencode(path)
        self.fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def parts(self, path):
        if path.startswith(b"/"):
            root = self.path.rstrip(b"/")
            if path != root and not path.startswith(root + b"/"):
                raise Refused("unsafe", "%s is outside the workspace" % printable(path))
            path = path[len(root):]
        parts = [part for part in path.split(b"/") if part not in (b"", b".")]
        if b".." in parts:
            raise Refused("unsafe", "%s holds '..'" % printable(path))
        return parts

    def walk(self, path, make=False):
        """Opens the directory that holds `path`, component by component."""
        parts = self.parts(path)
        fd = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            for part in parts[:-1]:
                below = self.step(fd, part, path, make)
                os.close(fd)
                fd = below
        except BaseException:
            os.close(fd)
            raise
        return Place(fd, parts[-1] if parts else None)

    def step(self, fd, part, path, make):
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        if make:
            try:
                os.mkdir(part, 0o777, dir_fd=fd)
            except FileExistsError:
                pass
        try:
            return os.open(part, flags, dir_fd=fd)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            found = Place(fd, part).lstat()
            if found is not None and stat.S_ISLNK(found.st_mode):
                raise Refused("unsafe", "%s leads through a link" % printable(path))
            raise Refused("not_found", "%s is no directory in %s" % (printable(part), printable(path)))

    def directory(self, path):
        """A readable descriptor of a directory."""
        with self.walk(path) as place:
            found = self.existing(place, path)
            if stat.S_ISLNK(found.st_mode):
                raise Refused("unsafe", "%s is a link" % printable(path))
            if not stat.S_ISDIR(found.st_mode):
                raise Refused("not_found", "%s is no directory" % printable(path))
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(place.name or b".", flags, dir_fd=place.fd)

    @staticmethod
    def existing(place, path):
        found = place.lstat()
        if found is None:
            raise Refused("not_found", "%s does not exist" % printable(path))
        return found

    def open_file(self, place, path):
        """A regular file for reading. Non-blocking, since it may become a FIFO at any time."""
        require_regular(self.existing(place, path), path)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        file = os.fdopen(os.open(place.name, flags, dir_fd=place.fd), "rb", buffering=0)
        try:
            found = os.fstat(file.fileno())
            require_regular(found, path)
        except BaseException:
            file.close()
            raise
        return file, found

    def replace(self, place, content, path):
        """Puts a whole new file in the place of what is there, atomically and durably."""
        found = place.lstat() if place.name is not None else os.fstat(place.fd)
        if found is not None:
            require_regular(found, path)
        mode = stat.S_IMODE(found.st_mode) & 0o777 if found is not None else None
        name = b".fleet-%s.tmp" % secrets.token_hex(8).encode()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o666, dir_fd=place.fd)
        try:
            try:
                view = memoryview(content)
                while len(view):
                    view = view[os.write(fd, view):]
                if mode is not None:
                    os.fchmod(fd, mode)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(name, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        except BaseException:
            try:
                os.unlink(name, dir_fd=place.fd)
            except OSError:
                pass
            raise
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.fd)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def require_regular(found, path):
    if stat.S_ISDIR(found.st_mode):
        raise Refused("is_directory", "%s is a directory" % printable(path))
    if stat.S_ISLNK(found.st_mode):
        raise Refused("unsafe", "%s is a link" % printable(path))
    if not stat.S_ISREG(found.st_mode):
        raise Refused("unsafe", "%s is not a regular file" % printable(path))


def hash_file(call, file, limit, path):
    """Size and SHA-256 of a whole file that may grow meanwhile."""
    digest, size = hashlib.sha256(), 0
    while True:
        call.check()
        chunk = file.read(256 * KIB)
        if not chunk:
            return size, digest.hexdigest()
        size += len(chunk)
        if size > limit:
            raise too_large(path, limit)
        digest.update(chunk)


def too_large(path, limit):
    return Refused("too_large", "%s is larger than %d bytes" % (printable(path), limit))


# --- Calls -------------------------------------------------------------------------------------


class Call:
    """One request: its fields, checked as they are taken, and what it may wait for."""

    def __init__(self, server, number, header, body):
        self.number, self.header, self.body = number, header, body
        self.owner = str(number)
        self.processes, self.workspace = server.processes, server.workspace
        self.kernel = server.kernel
        self.cancelled = False
        self.deadline = time.monotonic() + min(self.number_field("timeout_ms"), 10 ** 9) / 1000
        self.wake = Wake()

    def field(self, name, kind, default=None):
        value = self.header.get(name, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise Refused("bad_request", "%s: %r is not usable" % (name, type(value).__name__))
        return value

    def number_field(self, name, default=None):
        value = self.field(name, int, default)
        if value < 0:
            raise Refused("bad_request", "%s: %d is negative" % (name, value))
        return value

    def path(self, name="path"):
        raw = self.field(name, str).encode("utf-8", "surrogatepass")
        if b"\0" in raw:
            raise Refused("bad_request", "%s holds a zero byte" % name)
        return raw

    def cancel(self):
        self.cancelled = True
        self.wake.set()

    def check(self):
        if self.cancelled:
            raise Refused("cancelled", "the call was cancelled")
        if time.monotonic() >= self.deadline:
            raise Refused("io", "the call's time is over")

    def capture(self):
        limit = min(self.number_field("output_limit", DEFAULT_OUTPUT), MAX_OUTPUT)
        return Capture(self.workspace, "%d.txt" % self.number, limit)


def call_bash(call):
    command = call.field("command", str)
    if "\0" in command:
        raise Refused("bad_request", "command holds a zero byte")
    cwd = call.workspace.path
    if call.header.get("cwd") is not None:
        os.close(call.workspace.directory(call.path("cwd")))
        cwd = b"/".join([cwd, *call.workspace.parts(call.path("cwd"))])
    kills = oom_kills()
    output = call.capture()
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        try:
            argv = ["/bin/bash", "-c", command.encode("utf-8", "surrogatepass")]
            child = call.processes.spawn(call.owner, argv, call.wake, cwd,
                                         stdout=writer, stderr=writer)
        finally:
            os.close(writer)
        timed_out = supervise(call, child, {reader: output.feed})
    finally:
        os.close(reader)
        output.close()
    fields, body = output.result()
    fields.update(exit_code=None if timed_out else child.exit_code, timed_out=timed_out,
                  oom_killed=oom_kills() > kills)
    return fields, body


def call_read(call):
    path = call.path()
    offset, limit = call.number_field("offset", 0), call.number_field("limit", MAX_READ)
    with call.workspace.walk(path) as place:
        file, found = call.workspace.open_file(place, path)
    with file:
        if found.st_size > MAX_HASHED:
            raise too_large(path, MAX_HASHED)
        size, digest = hash_file(call, file, MAX_HASHED, path)
        body = b""
        if offset < size:
            body = os.pread(file.fileno(), min(limit, MAX_READ), offset)
    return {"size": size, "sha256": digest}, body


def call_fetch(call):
    path, limit = call.path(), call.number_field("max_bytes")
    with call.workspace.walk(path) as place:
        file, found = call.workspace.open_file(place, path)
    try:
        if found.st_size > limit:
            raise too_large(path, limit)
        size, digest = hash_file(call, file, limit, path)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return {"size": size, "sha256": digest}, (file, size)


def refuse_git_pointer(call, path):
    """The workspace's `.git` says which repository it belongs to: not the model's to choose."""
    if call.workspace.parts(path)[:1] == [b".git"]:
        raise Refused("unsafe", "%s belongs to git and is not written" % printable(path))


def written(content, replaced):
    digest = hashlib.sha256(content).hexdigest()
    return {"size": len(content), "sha256": digest, "replaced": replaced}, b""


def call_write(call):
    path = call.path()
    refuse_git_pointer(call, path)
    if len(call.body) > MAX_WRITE:
        raise too_large(path, MAX_WRITE)
    with call.workspace.walk(path, make=True) as place:
        call.workspace.replace(place, call.body, path)
    return written(call.body, 0)


EDITING = threading.Lock()


def call_edit(call):
    path = call.path()
    refuse_git_pointer(call, path)
    with EDITING, call.workspace.walk(path) as place:
        file, found = call.workspace.open_file(place, path)
        with file:
            if found.st_size > MAX_EDIT:
                raise too_large(path, MAX_EDIT)
            before = bytearray()
            while len(before) <= MAX_EDIT:
                chunk = file.read(MIB)
                if not chunk:
                    break
                before += chunk
            if len(before) > MAX_EDIT:
                raise too_large(path, MAX_EDIT)
        after, replaced = edited(call, bytes(before), path)
        call.workspace.replace(place, after, path)
    return written(after, replaced)


def edited(call, before, path):
    """The content after an edit and how often it replaced."""
    old = call.field("old", str).encode("utf-8", "surrogatepass")
    new = call.field("new", str).encode("utf-8", "surrogatepass")
    everywhere = call.field("replace_all", bool, False)
    expected = call.header.get("expected_hash")
    if expected is not None and expected != hashlib.sha256(before).hexdigest():
        raise Refused("stale", "%s is not what expected_hash says; view it again" % printable(path))
    try:
        before.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("io", "%s is not UTF-8" % printable(path))
    if not old:
        raise Refused("bad_request", "old is empty")
    if old == new:
        raise Refused("no_change", "old and new are the same")
    count = before.count(old)
    if count == 0 or (count > 1 and not everywhere):
        raise Refused("ambiguous", "old occurs %d times in %s" % (count, printable(path)))
    if len(before) + count * (len(new) - len(old)) > MAX_WRITE:
        raise too_large(path, MAX_WRITE)
    return before.replace(old, new), count


def call_stat(call):
    path = call.path()
    with call.workspace.walk(path) as place:
        found = call.workspace.existing(place, path)
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
    return {"kind": kinds.get(stat.S_IFMT(found.st_mode), "other"), "size": found.st_size}, b""


def call_list(call):
    fd = call.workspace.directory(call.path())
    names, budget, truncated = [], NAMES_BUDGET, False
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                name = printable(os.fsencode(entry.name))
                budget -= len(json.dumps(name, ensure_ascii=False).encode()) + 2
                if len(names) == MAX_NAMES or budget < 0:
                    truncated = True
                    break
                names.append(name)
    finally:
        os.close(fd)
    return {"names": sorted(names), "truncated": truncated}, b""


def first_line_number(paths, key):
    """A number from the first of these files that can be read; its line starts with the key."""
    for path in paths:
        try:
            with open(path) as file:
                for line in file.read(64 * KIB).splitlines():
                    words = line.split()
                    if words and (key is None or words[0] == key) and words[-1].isdigit():
                        return int(words[-1])
        except OSError:
            pass
    return None


CGROUP = "/sys/fs/cgroup"


def oom_kills():
    paths = [CGROUP + "/memory.events", CGROUP + "/memory/memory.oom_control",
             CGROUP + "/memory.oom_control"]
    return first_line_number(paths, "oom_kill") or 0


def call_resources(_call):
    paths = [CGROUP + "/memory.peak", CGROUP + "/memory/memory.max_usage_in_bytes",
             CGROUP + "/memory.max_usage_in_bytes"]
    return {"oom_kills": oom_kills(), "memory_peak": first_line_number(paths, None)}, b""


# --- Git ---------------------------------------------------------------------------------------

GIT = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
       "-c", "commit.gpgsign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
       "-c", "user.name=fleet agent", "-c", "user.email=agent@fleet.invalid"]
GIT_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
                   "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}
# What the agent may leave uncommitted, as git names it.
AGENTS_PATHS = ["--", ".", *(":(exclude)" + name for name in OWN_DIRECTORIES),
                ":(exclude,glob)**/.fleet-*.tmp"]


class Git:
    """Runs git on the agent's tree, inside the container, without hooks or helpers of its own."""

    def __init__(self, call):
        self.call = call
        # No repository above the workspace is ever taken for its own.
        above = os.path.dirname(os.fsdecode(call.workspace.path))
        self.environment = {"GIT_CEILING_DIRECTORIES": above, **GIT_ENVIRONMENT}

    def run(self, *arguments, feed=None):
        """Exit code, output (its beginning, unless `feed` takes it) and git's words."""
        self.call.check()
        output, words = Beginning(64 * KIB), Beginning(4 * KIB)
        pipes = [os.pipe(), os.pipe()]
        try:
            for reader, _ in pipes:
                os.set_blocking(reader, False)
            try:
                child = self.call.processes.spawn(
                    self.call.owner, [*GIT, *arguments], self.call.wake, self.call.workspace.path,
                    env=self.environment, stdout=pipes[0][1], stderr=pipes[1][1])
            finally:
                for _, writer in pipes:
                    os.close(writer)
            feeds = {pipes[0][0]: feed or output.feed, pipes[1][0]: words.feed}
            if supervise(self.call, child, feeds):
                raise Refused("io", "git %s took too long" % arguments[0])
        finally:
            for reader, _ in pipes:
                os.close(reader)
        return child.exit_code, output.text(), words.text()

    def must(self, *arguments, feed=None):
        code, output, words = self.run(*arguments, feed=feed)
        if code != 0:
            said = (words or output).strip() or "nothing"
            raise Refused("io", "git %s ended with %d and said: %s" % (arguments[0], code, said))
        return output

    def remove_stale_locks(self):
        """A killed git leaves its locks behind, and with them nothing can be committed."""
        if self.call.processes.running("git"):
            return
        names = ["index.lock", "HEAD.lock"]
        code, branch, _ = self.run("symbolic-ref", "-q", "HEAD")
        if code == 0 and branch.strip():
            names.append(branch.strip() + ".lock")
        for name in names:
            path = self.must("rev-parse", "--git-path", name).rstrip("\n")
            try:
                os.unlink(os.path.join(os.fsdecode(self.call.workspace.path), path))
            except OSError:
                pass

    def salvage(self, message):
        """Commits what is uncommitted, if anything. Tells whether it did."""
        if not self.must("status", "--porcelain", "--untracked-files=normal", *AGENTS_PATHS):
            return False
        # One unreadable file or unborn nested repository must not lose all the others.
        added, _, words = self.run("add", "-A", "--ignore-errors", *AGENTS_PATHS)
        staged, _, _ = self.run("diff", "--cached", "--quiet", "--ignore-submodules=none")
        if staged == 0:
            if added != 0:
                raise Refused("io", "git add ended with %d and said: %s" % (added, words.strip()))
            return False
        self.must("commit", "--quiet", "--no-verify", "--allow-empty-message", "-m", message)
        return True


class Beginning:
    """The first bytes of an output."""

    def __init__(self, limit):
        self.limit, self.data = limit, bytearray()

    def feed(self, chunk):
        self.data += chunk[:self.limit - len(self.data)]

    def text(self):
        return printable(bytes(self.data))


class Spool:
    """A bundle on its way: small ones in memory, large ones in an unnamed file."""

    def __init__(self, call, limit):
        self.call, self.limit, self.size, self.error = call, limit, 0, None
        place = os.fsdecode(call.workspace.path)
        self.file = tempfile.SpooledTemporaryFile(max_size=4 * MIB, dir=place)

    def feed(self, chunk):
        self.size += len(chunk)
        if self.error is None and self.size > self.limit:
            self.fail(Refused("too_large", "the bundle is larger than %d bytes" % self.limit))
        if self.error is None:
            try:
                self.file.write(chunk)
            except OSError as error:
                self.fail(Refused("io", "cannot keep the bundle: %s" % error.strerror))

    def fail(self, error):
        """Ends git early: its deadline is now."""
        self.error = error
        self.call.deadline = time.monotonic()


def call_collect_git(call):
    base, message = call.field("base", str), call.field("message", str)
    limit = call.number_field("max_bytes")
    if not re.fullmatch("[0-9a-f]{40}([0-9a-f]{24})?", base):
        raise Refused("bad_request", "base %r is no object name" % base[:80])
    if "\0" in message or len(message) > 64 * KIB:
        raise Refused("bad_request", "the message is not usable")
    git = Git(call)
    git.remove_stale_locks()
    salvaged = git.salvage(message)
    head = git.must("rev-parse", "--verify", "HEAD^{commit}").strip()
    span = "%s..HEAD" % base
    if git.must("rev-list", "--count", span).strip() == "0":
        return {"head": None, "salvaged": salvaged, "has_bundle": False}, b""
    spool = Spool(call, limit)
    try:
        git.must("bundle", "create", "--quiet", "-", span, feed=spool.feed)
        if spool.error is not None:
            raise spool.error
        spool.file.seek(0)
    except Refused as error:
        spool.file.close()
        raise spool.error or error
    return {"head": head, "salvaged": salvaged, "has_bundle": True}, (spool.file, spool.size)


# --- The interpreter, seen from the helper -----------------------------------------------------


class Kernel:
    """The one interpreter, started when first needed. It runs hostile code: its replies are only
    text, and it is killed rather than argued with."""

    # Not to be guessed: a command that forged it would not be killed with its call.
    OWNER = "kernel-" + os.urandom(8).hex()

    def __init__(self, processes, workspace):
        self.processes, self.workspace = processes, workspace
        self.busy = threading.Lock()
        self.child, self.fds = None, []
        # A state was lost and no reply has said so yet.
        self.lost = False

    def start(self, wake):
        requests, replies, output = os.pipe(), os.pipe(), os.pipe()
        self.fds = [requests[1], replies[0], output[0]]
        inside = [requests[0], replies[1], output[1]]
        try:
            for fd in self.fds:
                os.set_blocking(fd, False)
            argv = [sys.executable or "/usr/bin/python3", "-ISu", os.path.abspath(__file__),
                    "--kernel", str(inside[0]), str(inside[1])]
            self.child = self.processes.spawn(
                self.OWNER, argv, wake, self.workspace.path, env={"MPLBACKEND": "Agg"},
                stdout=output[1], stderr=output[1], pass_fds=inside[:2])
        except BaseException:
            self.forget()
            raise
        finally:
            for fd in inside:
                os.close(fd)

    def forget(self):
        for fd in self.fds:
            os.close(fd)
        self.fds, self.child = [], None

    def kill(self, capture=None):
        """Ends the interpreter and all that it started."""
        if self.child is None:
            return
        self.processes.signal_group(self.child, signal.SIGKILL)
        self.processes.finish(self.OWNER)
        if capture is not None:
            drain(self.fds[2], capture.feed, 1.0)
        self.forget()

    def cell(self, call, code, names, reset, capture):
        """Runs one cell. Answers the interpreter's reply, whether the time was over, why there is
        no reply, and whether a state was lost."""
        while not self.busy.acquire(timeout=0.05):
            call.check()
        try:
            if self.child is not None and (reset or self.child.status is not None):
                self.lost = self.lost or not reset
                self.kill(capture)
            if reset:
                self.lost = False
            if self.child is None:
                self.start(call.wake)
            self.child.wake = call.wake
            request = json.dumps({"code": code, "names": names, "cell": call.number}).encode()
            request = struct.pack(">I", len(request)) + request
            reply, timed_out, failure = self.converse(call, request, capture)
            lost = self.lost
            if not call.cancelled:  # else no reply tells it
                self.lost = False
            return reply, timed_out, failure, lost
        finally:
            self.busy.release()

    def converse(self, call, request, capture):
        asking, answering, output = self.fds
        reply, kill_at, timed_out, quiet = bytearray(), None, False, False
        while self.child.status is None:
            now = time.monotonic()
            if kill_at is None and (call.cancelled or now >= call.deadline):
                timed_out, kill_at = not call.cancelled, now + KILL_GRACE
                self.processes.signal_group(self.child, signal.SIGINT)
            elif kill_at is not None and now >= kill_at:
                break
            until = call.deadline if kill_at is None else kill_at
            fds = [call.wake.read_end, answering] + ([] if quiet else [output])
            ready = select_readable(fds, until - now, [asking] if request else [])
            if call.wake.read_end in ready:
                call.wake.clear()
            if request and asking in ready:
                try:
                    request = request[os.write(asking, request):]
                except BlockingIOError:
                    pass
                except OSError:
                    break
            if output in ready:
                chunk = read_some(output)
                quiet = chunk == b""
                capture.feed(chunk or b"")
            if answering in ready:
                chunk = read_some(answering)
                reply += chunk or b""
                if chunk == b"" or len(reply) > MAX_KERNEL_REPLY:
                    break
                parsed = parse_reply(reply)
                if parsed is not None:
                    self.read_rest(output, capture)
                    return parsed, timed_out, None
        return None, timed_out, self.give_up(call, timed_out, capture)

    @staticmethod
    def read_rest(output, capture):
        """What the cell wrote before it answered is in the pipe; later writers wait."""
        raw = fcntl.ioctl(output, termios.FIONREAD, b"\0" * 4)
        left = struct.unpack("i", raw)[0]
        while left > 0:
            chunk = read_some(output)
            if not chunk:
                break
            capture.feed(chunk)
            left -= len(chunk)

    def give_up(self, call, timed_out, capture):
        child = self.child
        died = child.status is not None
        if not died and not timed_out and not call.cancelled:
            # Its end of a pipe closed: it is ending, or it will be ended.
            until = time.monotonic() + 0.5
            while child.status is None and time.monotonic() < until:
                select_readable([call.wake.read_end], 0.05)
                call.wake.clear()
            died = child.status is not None
        self.kill(capture)
        self.lost = True
        if died:
            return "the interpreter ended (%s); its state is lost" % child.ended()
        if timed_out:
            return "the cell did not end when interrupted; the interpreter was killed and its state is lost"
        return "the interpreter stopped answering and was killed; its state is lost"


def parse_reply(data):
    """A kernel's reply once it is whole. One that is not understood counts as empty."""
    if len(data) < 4 or len(data) - 4 < struct.unpack(">I", data[:4])[0]:
        return None
    try:
        reply = json.loads(bytes(data[4:]).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        reply = None
    return reply if isinstance(reply, dict) else {}


def text_or_none(value):
    return bounded(value, TEXT_LIMIT) if isinstance(value, str) else None


def checked_vars(reply):
    """Pairs of a name and a text, within a budget for all."""
    pairs, budget = [], VARS_BUDGET
    raw = reply.get("vars")
    for pair in raw if isinstance(raw, list) else []:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            continue
        name, text = bounded(pair[0], 256), bounded(pair[1], VAR_LIMIT)
        budget -= len(json.dumps([name, text], ensure_ascii=False).encode())
        if budget < 0:
            break
        pairs.append([name, text])
    return pairs


def call_python(call):
    code, reset = call.field("code", str), call.field("reset_kernel", bool, False)
    names = call.field("return_vars", list, [])
    if not all(isinstance(name, str) for name in names):
        raise Refused("bad_request", "return_vars holds something that is no name")
    capture = call.capture()
    try:
        reply, timed_out, failure, lost = call.kernel.cell(call, code, names, reset, capture)
    finally:
        capture.close()
    if call.cancelled:
        call.check()
    fields, body = capture.result()
    reply = reply or {}
    figures = reply.get("figures")
    fields.update(
        value=text_or_none(reply.get("value")), error=failure or text_or_none(reply.get("error")),
        vars=checked_vars(reply), timed_out=timed_out, kernel_lost=lost,
        figures=[name for name in (figures if isinstance(figures, list) else [])[:MAX_FIGURES]
                 if isinstance(name, str) and re.fullmatch(r"figures/[a-z0-9-]{1,64}\.png", name)])
    return fields, body


# --- The interpreter itself --------------------------------------------------------------------


class Interpreter:
    """Runs cells in one namespace, by IPython's shell when there is one."""

    def __init__(self):
        self.running = False
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = self.module
        self.shell = make_shell(self.module)

    def on_interrupt(self, *_):
        if self.running:
            raise KeyboardInterrupt

    def run(self, request):
        reply = {"value": None, "error": None, "vars": [], "figures": []}
        signal.signal(signal.SIGINT, self.on_interrupt)
        try:
            try:
                self.running = True
                value = self.execute(request["code"], "<cell %d>" % request["cell"])
                if value is not None:
                    reply["value"] = bounded(repr(value), TEXT_LIMIT)
                    self.module.__dict__["_"] = value
                value = None
                reply["figures"] = save_figures(request["cell"])
            finally:
                try:
                    reply["vars"] = self.variables(request["names"])
                finally:
                    self.running = False
        except BaseException as error:  # SystemExit and KeyboardInterrupt end the cell only
            reply["error"] = bounded(describe(error), TEXT_LIMIT)
        return reply

    def execute(self, code, name):
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        if self.shell is not None:
            return run_in_shell(self.shell, code)
        tree = compile(code, name, "exec", ast.PyCF_ONLY_AST)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec"), self.module.__dict__)
        if last is not None:
            return eval(compile(last, name, "eval"), self.module.__dict__)
        return None

    def variables(self, names):
        space = self.module.__dict__
        return [[name, show(space[name])] for name in names[:1024] if name in space]


def show(value):
    """A value as JSON, or else its repr; not more of either than is sent."""
    try:
        text = ""
        for part in json.JSONEncoder(ensure_ascii=False, allow_nan=False).iterencode(value):
            text += part
            if len(text) > VAR_LIMIT:
                break
    except (TypeError, ValueError, RecursionError):
        try:
            text = repr(value)
        except Exception as error:
            text = "<%s: repr failed: %s>" % (type(value).__name__, type(error).__name__)
    return bounded(text, VAR_LIMIT)


def describe(error):
    """A traceback without this file's frames and without the shell's, wherever they stand."""
    try:
        shown = traceback.TracebackException.from_exception(error)
        pending, seen = [shown], set()
        while pending:
            one = pending.pop()
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            one.stack[:] = [frame for frame in one.stack
                            if frame.filename != __file__ and "/IPython/" not in frame.filename]
            pending += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or [])]
        text = "".join(shown.format())
    except BaseException as second:
        text = "%s (its traceback cannot be shown: %s)" % (type(error).__name__, type(second).__name__)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def make_shell(module):
    """IPython's shell over our namespace, silent: values and errors go into the reply."""
    os.environ.setdefault("IPYTHONDIR", "/tmp/.ipython")
    try:
        from IPython.core.displayhook import DisplayHook
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        class Quiet(DisplayHook):
            def __call__(self, result=None):
                if self.exec_result is not None:
                    self.exec_result.result = result

        class Shell(InteractiveShell):
            displayhook_class = Quiet

            def _showtraceback(self, *_):
                pass

        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "NoColor"
        shell = Shell.instance(config=config, user_module=module, user_ns=module.__dict__)
        shell.colors = "NoColor"
        return shell
    except Exception:
        return None


def run_in_shell(shell, code):
    result = shell.run_cell(code, store_history=False)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        raise error
    return result.result


def save_figures(cell):
    """Saves matplotlib's open figures under names of our own and closes them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    import io
    saved = []
    numbers = list(pyplot.get_fignums())
    if numbers:
        try:
            os.mkdir(os.path.join(WORKSPACE_OF_KERNEL, "figures"))
        except FileExistsError:
            pass
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        directory = os.open(os.path.join(WORKSPACE_OF_KERNEL, "figures"), flags)
        try:
            for number in numbers[:MAX_FIGURES]:
                picture = io.BytesIO()
                pyplot.figure(number).savefig(picture, format="png")
                if picture.tell() > MAX_FIGURE:
                    continue
                name = "cell-%d-%d-%s.png" % (cell, number, secrets.token_hex(4))
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                with os.fdopen(os.open(name, flags, 0o644, dir_fd=directory), "wb") as file:
                    file.write(picture.getbuffer())
                saved.append("figures/" + name)
        finally:
            os.close(directory)
            pyplot.close("all")
    return saved


WORKSPACE_OF_KERNEL = os.getcwd() if "--kernel" in sys.argv[1:2] else None


def serve_cells(asking, answering):
    """The interpreter's main loop. Forks of it must not answer in its place."""
    for fd in (asking, answering):
        os.set_inheritable(fd, False)
    # The helper came up without site packages so that nothing foreign runs in it; cells want them.
    import site
    site.main()
    me, interpreter = os.getpid(), Interpreter()
    sys.argv = [""]
    sys.path.insert(0, "")
    signal.signal(signal.SIGINT, interpreter.on_interrupt)
    with os.fdopen(asking, "rb") as requests:
        while True:
            prefix = requests.read(4)
            if len(prefix) < 4:
                os._exit(0)
            reply = interpreter.run(json.loads(requests.read(struct.unpack(">I", prefix)[0])))
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:
                    pass
            if os.getpid() != me:
                os._exit(0)
            raw = json.dumps(reply).encode()
            raw = struct.pack(">I", len(raw)) + raw
            while raw:
                raw = raw[os.write(answering, raw):]


# --- The server --------------------------------------------------------------------------------

CALLS = {"bash": call_bash, "python": call_python, "read": call_read, "write": call_write,
         "edit": call_edit, "stat": call_stat, "list": call_list, "fetch": call_fetch,
         "collect_git": call_collect_git, "resources": call_resources}


class Server:
    """Takes requests off the connection and has them answered by worker threads."""

    def __init__(self, connection, processes, workspace):
        self.connection, self.processes, self.workspace = connection, processes, workspace
        self.kernel = Kernel(processes, workspace)
        self.lock = threading.Lock()
        self.in_flight = {}
        self.accepted = queue.SimpleQueue()
        # Started at once: when a fork bomb has taken every process number, no thread can be.
        for _ in range(WORKERS):
            threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            self.answer(self.accepted.get())

    def serve(self):
        while True:
            header, body = self.connection.receive()
            if "cancel" in header:
                self.cancel(header["cancel"])
                continue
            number = header.get("id")
            if type(number) is not int or not 0 <= number < 2 ** 64 or number in self.in_flight:
                raise ValueError("a request with id %r" % (number,))
            try:
                self.accept(number, header, body)
            except Refused as error:
                self.refuse(number, error)

    def accept(self, number, header, body):
        if header.get("call") not in CALLS:
            raise Refused("bad_request", "no call is named %r" % str(header.get("call"))[:80])
        if len(self.in_flight) >= MAX_IN_FLIGHT:
            raise Refused("bad_request", "too many calls at once")
        try:
            call = Call(self, number, header, body)
        except OSError as error:
            raise os_refusal(error)
        with self.lock:
            self.in_flight[number] = call
        self.accepted.put(call)

    def cancel(self, number):
        if type(number) is not int:
            raise ValueError("a cancel of %r" % (number,))
        with self.lock:
            call = self.in_flight.get(number)
        if call is not None:
            call.cancel()

    def answer(self, call):
        """Answers one call, whatever happens in it."""
        body, error = b"", None
        try:
            call.check()
            fields, body = CALLS[call.header["call"]](call)
        except Refused as refused:
            error = refused
        except OSError as failed:
            error = os_refusal(failed)
        except Exception as unforeseen:
            error = Refused("io", "the call failed: %s: %s" % (type(unforeseen).__name__, unforeseen))
        if call.processes.roots.get(call.owner):
            call.processes.finish(call.owner)
        with self.lock:
            del self.in_flight[call.number]
        if call.cancelled:
            error = Refused("cancelled", "the call was cancelled")
        call.wake.close()
        try:
            if error is None:
                try:
                    self.connection.send({"id": call.number, "ok": True, **fields}, body)
                except Refused as refused:
                    error = refused
            if error is not None:
                self.refuse(call.number, error)
        except BaseException as failed:
            # A reply half sent cannot be mended.
            log("cannot answer: %s" % failed)
            os._exit(1)
        finally:
            if isinstance(body, tuple):
                body[0].close()

    def refuse(self, number, error):
        self.connection.send({"id": number, "ok": False, "kind": error.kind,
                              "message": bounded(str(error), 8 * KIB)})


def os_refusal(error):
    kinds = {errno.ENOENT: "not_found", errno.EISDIR: "is_directory", errno.ELOOP: "unsafe",
             errno.ENXIO: "unsafe", errno.EFBIG: "too_large"}
    return Refused(kinds.get(error.errno, "io"), error.strerror or str(error))


def seal():
    """Keeps the helper's memory from its children, and takes their orphans."""
    try:
        import ctypes
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # the host refuses what it cannot trust; outside a container nothing is lost
    # Python's handler would let any process inside interrupt the helper. The default action does
    # not reach the first process of a container, and children inherit nothing odd.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def has_ipython():
    import site
    return any(os.path.isdir(os.path.join(path, "IPython")) for path in site.getsitepackages())


def main():
    seal()
    place = sys.argv[1] if len(sys.argv) > 1 else "/fleet"
    try:
        with open(os.path.join(place, "token"), encoding="utf-8") as file:
            token = file.read()
        connection = Connection(os.path.join(place, "s"))
        connection.send({"hello": 1, "token": token, "python": sys.version.split()[0],
                         "ipython": has_ipython()})
        welcome, _ = connection.receive()
        if welcome.get("welcome") != 1 or not isinstance(welcome.get("workspace"), str):
            raise ValueError("no welcome")
        workspace = Workspace(welcome["workspace"])
    except (OSError, EOFError, ValueError) as error:
        log("cannot begin: %s" % error)
        os._exit(1)
    processes = Processes()
    threading.Thread(target=watch, args=(connection, processes), daemon=True).start()
    status = 1
    try:
        Server(connection, processes, workspace).serve()
    except (EOFError, ConnectionError):
        status = 0
    except BaseException as error:
        log("the connection broke the protocol: %s" % error)
    if os.getpid() != 1:
        processes.kill_roots()
    os._exit(status)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--kernel"]:
        serve_cells(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()

"""The run's one Python interpreter, seen from the helper. It runs hostile code: its replies are only
text, and it is killed rather than argued with.
"""

import fcntl
import json
import os
import re
import signal
import struct
import sys
import termios
import threading
import time

from cgroup import oom_kills
from frames import Refused
from limits import KILL_GRACE, MAX_FIGURES, MAX_KERNEL_REPLY, TEXT_LIMIT, VAR_LIMIT, VARS_BUDGET
from output import drain, read_some, select_readable
from text import bounded

INTERPRETER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interpreter.py")


class Kernel:
    """The one interpreter, started when first needed. It runs hostile code: its replies are only
    text, and it is killed rather than argued with."""

    OWNER = "kernel"

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
            argv = [sys.executable or "/usr/bin/python3", "-BISu", INTERPRETER, str(inside[0]), str(inside[1])]
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
    capture, kills = call.capture(), oom_kills()
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
        oom_killed=oom_kills() > kills,
        figures=[name for name in (figures if isinstance(figures, list) else [])[:MAX_FIGURES]
                 if isinstance(name, str) and re.fullmatch(r"figures/[a-z0-9-]{1,64}\.png", name)])
    return fields, body

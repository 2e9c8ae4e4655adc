"""One request: its fields, checked as they are taken, and what it may wait for."""

import time

from frames import Refused
from limits import DEFAULT_OUTPUT, MAX_OUTPUT
from output import Capture
from processes import Wake


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

"""What the kernel counts for the container: its memory, and whom it killed for want of it."""

import os

from limits import KIB

CGROUP = "/sys/fs/cgroup"


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


def oom_kills():
    paths = [CGROUP + "/memory.events", CGROUP + "/memory/memory.oom_control",
             CGROUP + "/memory.oom_control"]
    return first_line_number(paths, "oom_kill") or 0


def memory_peak():
    paths = [CGROUP + "/memory.peak", CGROUP + "/memory/memory.max_usage_in_bytes",
             CGROUP + "/memory.max_usage_in_bytes"]
    return first_line_number(paths, None)


class Yielding:
    """While it is entered, what is started stands before the helper for the kernel to kill where memory
    runs out, and so does all that it starts. Inherited at the fork: nothing is started in between.
    Made while the helper is not yet closed to others, itself included."""

    FIRST = 500

    def __init__(self):
        try:
            self.fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
            self.own = int(os.pread(self.fd, 16, 0))
        except (OSError, ValueError):
            self.fd = None  # this kernel has no such file

    def __enter__(self):
        self.put(max(self.own, self.FIRST) if self.fd is not None else None)

    def __exit__(self, *_):
        self.put(self.own if self.fd is not None else None)

    def put(self, score):
        if score is not None:
            try:
                os.pwrite(self.fd, b"%d" % score, 0)
            except OSError:
                pass  # without it the kernel goes by size alone

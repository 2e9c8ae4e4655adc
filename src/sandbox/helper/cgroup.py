"""What the kernel counts for the container: its memory, and whom it killed for want of it."""

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

"""The calls on the container itself: a command, and what it all took."""

import os

from frames import Refused
from limits import KIB
from output import supervise

CGROUP = "/sys/fs/cgroup"


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


def call_resources(_call):
    paths = [CGROUP + "/memory.peak", CGROUP + "/memory/memory.max_usage_in_bytes",
             CGROUP + "/memory.max_usage_in_bytes"]
    return {"oom_kills": oom_kills(), "memory_peak": first_line_number(paths, None)}, b""

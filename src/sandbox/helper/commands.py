"""The calls on the container itself: a command, and what it all took."""

import os

from cgroup import memory_peak, oom_kills
from frames import Refused
from output import supervise

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


def call_resources(_call):
    return {"oom_kills": oom_kills(), "memory_peak": memory_peak()}, b""

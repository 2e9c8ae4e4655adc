"""Takes requests off the connection and has them answered by worker threads."""

import errno
import os
import queue
import threading

from call import Call
from commands import call_bash, call_resources
from file_calls import call_edit, call_fetch, call_list, call_read, call_stat, call_write
from frames import Refused, log
from git import call_collect_git
from kernel import Kernel, call_python
from limits import KIB, MAX_IN_FLIGHT, WORKERS
from text import bounded

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
    kinds = {errno.ENOENT: "not_found", errno.ENOTDIR: "not_found",
             errno.EISDIR: "is_directory", errno.ELOOP: "unsafe", errno.ENXIO: "unsafe", errno.EFBIG: "too_large"}
    return Refused(kinds.get(error.errno, "io"), error.strerror or str(error))

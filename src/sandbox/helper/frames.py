"""The one stream to fleet, and the watch over it: when it ends, everything here does.

A frame is two lengths, a JSON header and raw bytes. One that breaks the protocol ends the helper.
"""

import json
import os
import select
import socket
import struct
import threading

from limits import KIB, MAX_HEADER, MAX_REQUEST_BODY


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

"""The way out, seen from inside: a port that carries bytes to fleet's proxy and judges nothing.

It is there only where fleet put the proxy's socket beside its own. Programs find it by the usual
variables; one that connects to the socket itself gains nothing, since the proxy is the same.
"""

import os
import selectors
import socket
import threading

from limits import FORWARDED, FORWARD_BUFFER

SOCKET = "e"
HOST, PORT = "127.0.0.1", 3128
# What the programs of a run are told; empty where there is no way out.
VARIABLES = {}


def start(place):
    """Listens, if the proxy is there. Commands that start later find the port open."""
    path = os.path.join(place, SOCKET)
    if not os.path.exists(path):
        return
    listener = socket.create_server((HOST, PORT), backlog=64)
    listener.setblocking(False)
    url = "http://%s:%d" % (HOST, PORT)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        VARIABLES[name] = url
    for name in ("NO_PROXY", "no_proxy"):
        VARIABLES[name] = "localhost,127.0.0.1,::1"
    threading.Thread(target=Forwarder(listener, path).serve, daemon=True).start()


class Side:
    """One socket of a pair: what it has to send, and whether it has heard the end."""

    def __init__(self, sock):
        self.sock = sock
        self.other = None
        self.pending = bytearray()
        self.heard_end = self.sent_end = False

    def wanted(self):
        events = 0
        if not self.heard_end and len(self.other.pending) < FORWARD_BUFFER:
            events |= selectors.EVENT_READ
        if self.pending:
            events |= selectors.EVENT_WRITE
        return events

    def read(self):
        try:
            chunk = self.sock.recv(FORWARD_BUFFER)
        except BlockingIOError:
            return
        if chunk:
            self.other.pending += chunk
        else:
            self.heard_end = True

    def write(self):
        """Sends what it can; passes the end on once all is sent."""
        if self.pending:
            try:
                del self.pending[:self.sock.send(self.pending)]
            except BlockingIOError:
                return
        if self.other.heard_end and not self.pending and not self.sent_end:
            self.sent_end = True
            self.sock.shutdown(socket.SHUT_WR)


class Forwarder:
    """One thread for all connections, so that they cost no processes."""

    def __init__(self, listener, path):
        self.listener, self.path = listener, path
        self.selector = selectors.DefaultSelector()
        self.registered = {}
        self.open = 0

    def serve(self):
        self.selector.register(self.listener, selectors.EVENT_READ)
        while True:
            for key, events in self.selector.select():
                if key.data is None:
                    self.accept()
                else:
                    self.carry(key.data, events)

    def accept(self):
        try:
            inside, _ = self.listener.accept()
        except OSError:
            return
        inside.setblocking(False)
        outside = None
        try:
            outside = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            outside.setblocking(False)
            outside.connect(self.path)
        except OSError:
            # The proxy has gone, or cannot keep up.
            inside.close()
            if outside is not None:
                outside.close()
            return
        near, far = Side(inside), Side(outside)
        near.other, far.other = far, near
        self.open += 1
        if self.open >= FORWARDED:
            self.selector.unregister(self.listener)
        self.renew(near)

    def carry(self, side, events):
        if side.sock.fileno() < 0:
            return  # closed with its other side in this very round
        try:
            if events & selectors.EVENT_READ:
                side.read()
            side.write()
            side.other.write()
        except OSError:
            return self.close(side)
        if side.sent_end and side.other.sent_end:
            return self.close(side)
        self.renew(side)

    def renew(self, side):
        for each in (side, side.other):
            wanted, seen = each.wanted(), self.registered.get(each.sock)
            if wanted == (seen or 0):
                continue
            if not wanted:
                self.selector.unregister(each.sock)
                del self.registered[each.sock]
                continue
            how = self.selector.modify if seen else self.selector.register
            how(each.sock, wanted, each)
            self.registered[each.sock] = wanted

    def close(self, side):
        for each in (side, side.other):
            if self.registered.pop(each.sock, None):
                self.selector.unregister(each.sock)
            each.sock.close()
        if self.open >= FORWARDED:
            self.selector.register(self.listener, selectors.EVENT_READ)
        self.open -= 1

"""Processes: started, reaped, told apart by the call that they belong to, and killed with it.

Everything that is read about a process here may be forged by it; that must only ever decide when
it dies.
"""

import errno
import os
import signal
import subprocess
import threading
import time

import forwarder
from frames import Refused, log
from limits import KIB, UNKILLABLE
from text import printable

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


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

    def __init__(self, yielding):
        self.yielding = yielding
        # Starting and sweeping exclude each other: between fork and exec a child belongs to nobody.
        self.lock = threading.Lock()
        self.started = threading.Condition(self.lock)
        self.children = {}
        self.roots = {}
        threading.Thread(target=self.reap, daemon=True).start()

    def spawn(self, owner, argv, wake, cwd, env=None, **pipes):
        """Starts a program in its own session, marked as its owner's."""
        environment = {"PATH": PATH, "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}
        environment.update(forwarder.VARIABLES)
        environment.update(env or {}, FLEET_CALL=owner)
        with self.lock:
            try:
                with self.yielding:
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
        table = process_table()
        return any(descends(pid, table) and program_name(pid).startswith(names) for pid in table)


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


def descends(pid, table):
    """Whether a process is a descendant of this one, which adopts orphans."""
    while pid in table:
        pid = table[pid][0]
        if pid == os.getpid():
            return True
    return False


def program_name(pid):
    try:
        with open("/proc/%d/comm" % pid, "rb") as file:
            return printable(file.read().strip())
    except OSError:
        return ""


def mark(pid):
    """The call that a process says it belongs to. Forged, it only chooses which call's end ends it.
    Only calls are believed: the interpreter outlives them, and its mark is no secret."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            for entry in file.read(256 * KIB).split(b"\0"):
                if entry.startswith(b"FLEET_CALL="):
                    name = printable(entry[len(b"FLEET_CALL="):])
                    return name if name.isdigit() else None
    except OSError:
        pass
    return None

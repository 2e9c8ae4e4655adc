"""fleet's helper: the first process of a sealed container.

It connects out once to fleet's socket, proves itself with a token and serves calls: commands,
Python cells, files, the packing of commits. It is trusted code in a hostile place: whatever it
reads from its children, the workspace or /proc may be forged, and nothing of that may end it, fill
its memory or lead it out of the workspace. When its connection ends it ends, and all with it.

Started as `python3 -BISu /fleet/helper [directory of socket and token]`: Python finds this file and
imports the modules beside it by their plain names. Python 3.8 or newer, standard library only.
"""

import os
import signal
import sys
import threading

from cgroup import Yielding
from frames import Connection, log, watch
from limits import THREAD_STACK

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36





def seal():
    """Keeps the helper's memory from its children, and takes their orphans."""
    try:
        import ctypes
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # the host refuses what it cannot trust; outside a container nothing is lost
    # Python's handler would let any process inside interrupt the helper. The default action does
    # not reach the first process of a container, and children inherit nothing odd.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def has_ipython():
    import site
    return any(os.path.isdir(os.path.join(path, "IPython")) for path in site.getsitepackages())


def greet(place):
    """Connects and says hello; answers the connection."""
    with open(os.path.join(place, "token"), encoding="utf-8") as file:
        token = file.read()
    connection = Connection(os.path.join(place, "s"))
    connection.send({"hello": 1, "token": token, "python": sys.version.split()[0],
                     "ipython": has_ipython()})
    return connection


def welcomed(connection):
    """The workspace that fleet names in its answer."""
    welcome, _ = connection.receive()
    if welcome.get("welcome") != 1 or not isinstance(welcome.get("workspace"), str):
        raise ValueError("no welcome")
    return welcome["workspace"]


def main():
    yielding = Yielding()
    seal()
    # Eight mebibytes for each of them would not fit a small limit of memory.
    threading.stack_size(THREAD_STACK)
    place = sys.argv[1] if len(sys.argv) > 1 else "/fleet"
    try:
        connection = greet(place)
        # Compiled while fleet reads the hello.
        import forwarder
        from files import Workspace
        from processes import Processes
        from server import Server
        workspace = Workspace(welcomed(connection))
    except (OSError, EOFError, ValueError) as error:
        log("cannot begin: %s" % error)
        os._exit(1)
    try:
        forwarder.start(place)
    except OSError as error:
        log("cannot listen for programs that go out: %s" % error)
        os._exit(1)
    processes = Processes(yielding)
    threading.Thread(target=watch, args=(connection, processes), daemon=True).start()
    status = 1
    try:
        Server(connection, processes, workspace).serve()
    except (EOFError, ConnectionError):
        status = 0
    except BaseException as error:
        log("the connection broke the protocol: %s" % error)
    if os.getpid() != 1:
        processes.kill_roots()
    os._exit(status)


if __name__ == "__main__":
    main()

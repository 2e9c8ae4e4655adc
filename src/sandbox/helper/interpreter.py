"""The interpreter in which cells run: a process of its own, started by kernel.py as

    python3 -BISu interpreter.py REQUESTS REPLIES

with two descriptors. Nothing that fleet relies on happens in here.
"""

import ast
import json
import linecache
import os
import re
import signal
import struct
import sys
import traceback
import types
import warnings

# Found by plain name now, and by no cell later.
OURS = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, OURS)
from figures import Figures
from limits import TEXT_LIMIT, VAR_LIMIT
from text import bounded
sys.path.remove(OURS)
del sys.modules["figures"], sys.modules["limits"], sys.modules["text"]

# Where cells begin, whatever directory they change to.
WORKSPACE = os.getcwd()


class Interpreter:
    """Runs cells in one namespace, by IPython's shell when there is one."""

    def __init__(self):
        self.running = False
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = self.module
        self.figures = None
        self.shell = make_shell(self)
        # Showing a figure is how one asks for it, and no window is missed.
        warnings.filterwarnings("ignore", message=".*non-interactive.*cannot be shown")

    def on_interrupt(self, *_):
        if self.running:
            raise KeyboardInterrupt

    def run(self, request):
        reply = {"value": None, "error": None, "vars": [], "figures": []}
        self.figures = Figures(WORKSPACE, request["cell"])
        signal.signal(signal.SIGINT, self.on_interrupt)
        try:
            try:
                self.running = True
                self.evaluate(request, reply)
            finally:
                try:
                    self.figures.keep_open()
                finally:
                    try:
                        reply["vars"] = self.variables(request["names"])
                    finally:
                        self.running = False
        except BaseException as error:  # SystemExit and KeyboardInterrupt end the cell only
            reply["error"] = bounded(describe(error), TEXT_LIMIT)
        reply["figures"] = self.figures.saved
        if self.figures.note():
            print(self.figures.note())
        return reply

    def evaluate(self, request, reply):
        value = self.execute(request["code"], "<cell %d>" % request["cell"])
        if value is not None:
            reply["value"] = bounded(repr(value), TEXT_LIMIT)
            self.module.__dict__["_"] = value

    def execute(self, code, name):
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        if self.shell is not None:
            return run_in_shell(self.shell, code)
        tree = compile(code, name, "exec", ast.PyCF_ONLY_AST)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec"), self.module.__dict__)
        if last is not None:
            return eval(compile(last, name, "eval"), self.module.__dict__)
        return None

    def variables(self, names):
        space = self.module.__dict__
        return [[name, show(space[name])] for name in names[:1024] if name in space]


def show(value):
    """A value as JSON, or else its repr; not more of either than is sent."""
    try:
        text = ""
        for part in json.JSONEncoder(ensure_ascii=False, allow_nan=False).iterencode(value):
            text += part
            if len(text) > VAR_LIMIT:
                break
    except (TypeError, ValueError, RecursionError):
        try:
            text = repr(value)
        except Exception as error:
            text = "<%s: repr failed: %s>" % (type(value).__name__, type(error).__name__)
    return bounded(text, VAR_LIMIT)


def describe(error):
    """A traceback without this file's frames and without the shell's, wherever they stand."""
    try:
        shown = traceback.TracebackException.from_exception(error)
        pending, seen = [shown], set()
        while pending:
            one = pending.pop()
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            one.stack[:] = [frame for frame in one.stack
                            if not frame.filename.startswith(OURS) and "/IPython/" not in frame.filename]
            pending += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or [])]
        text = "".join(shown.format())
    except BaseException as second:
        text = "%s (its traceback cannot be shown: %s)" % (type(error).__name__, type(second).__name__)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def make_shell(interpreter):
    """IPython's shell over our namespace, silent: values, errors and pictures go into the reply."""
    module = interpreter.module
    os.environ.setdefault("IPYTHONDIR", "/tmp/.ipython")
    try:
        from IPython.core.displayhook import DisplayHook
        from IPython.core.displaypub import DisplayPublisher
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        class Quiet(DisplayHook):
            def __call__(self, result=None):
                if self.exec_result is not None:
                    self.exec_result.result = result

        class Publisher(DisplayPublisher):
            def publish(self, data, *_, **__):
                if not interpreter.figures.keep_shown(data):
                    print(data.get("text/plain", ""))

        class Shell(InteractiveShell):
            displayhook_class = Quiet
            display_pub_class = Publisher

            def _showtraceback(self, *_):
                pass

        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "NoColor"
        shell = Shell.instance(config=config, user_module=module, user_ns=module.__dict__)
        shell.colors = "NoColor"
        return shell
    except Exception:
        return None


def run_in_shell(shell, code):
    result = shell.run_cell(code, store_history=False)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        raise error
    return result.result


def serve_cells(asking, answering):
    """The interpreter's main loop. Forks of it must not answer in its place."""
    for fd in (asking, answering):
        os.set_inheritable(fd, False)
    # The helper came up without site packages so that nothing foreign runs in it; cells want them.
    import site
    site.main()
    me, interpreter = os.getpid(), Interpreter()
    sys.argv = [""]
    sys.path.insert(0, "")
    signal.signal(signal.SIGINT, interpreter.on_interrupt)
    with os.fdopen(asking, "rb") as requests:
        while True:
            prefix = requests.read(4)
            if len(prefix) < 4:
                os._exit(0)
            reply = interpreter.run(json.loads(requests.read(struct.unpack(">I", prefix)[0])))
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:
                    pass
            if os.getpid() != me:
                os._exit(0)
            raw = json.dumps(reply).encode()
            raw = struct.pack(">I", len(raw)) + raw
            while raw:
                raw = raw[os.write(answering, raw):]


if __name__ == "__main__":
    serve_cells(int(sys.argv[1]), int(sys.argv[2]))

"""The agent's commits, packed as a git bundle, from whatever state it left the tree in."""

import os
import re
import tempfile
import time

from frames import Refused
from limits import KIB, MIB
from output import Beginning, supervise

# fleet's own directories: they stay out of the agent's commits.
OWN_DIRECTORIES = (".fleet", "figures", "subagents")
GIT = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
       "-c", "commit.gpgsign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
       "-c", "user.name=fleet agent", "-c", "user.email=agent@fleet.invalid"]
GIT_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
                   "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}
# What the agent may leave uncommitted, as git names it.
AGENTS_PATHS = ["--", ".", *(":(exclude)" + name for name in OWN_DIRECTORIES),
                ":(exclude,glob)**/.fleet-*.tmp"]


class Git:
    """Runs git on the agent's tree, inside the container, without hooks or helpers of its own."""

    def __init__(self, call):
        self.call = call
        # No repository above the workspace is ever taken for its own.
        above = os.path.dirname(os.fsdecode(call.workspace.path))
        self.environment = {"GIT_CEILING_DIRECTORIES": above, **GIT_ENVIRONMENT}

    def run(self, *arguments, feed=None):
        """Exit code, output (its beginning, unless `feed` takes it) and git's words."""
        self.call.check()
        output, words = Beginning(64 * KIB), Beginning(4 * KIB)
        pipes = [os.pipe(), os.pipe()]
        try:
            for reader, _ in pipes:
                os.set_blocking(reader, False)
            try:
                child = self.call.processes.spawn(
                    self.call.owner, [*GIT, *arguments], self.call.wake, self.call.workspace.path,
                    env=self.environment, stdout=pipes[0][1], stderr=pipes[1][1])
            finally:
                for _, writer in pipes:
                    os.close(writer)
            feeds = {pipes[0][0]: feed or output.feed, pipes[1][0]: words.feed}
            if supervise(self.call, child, feeds):
                raise Refused("io", "git %s took too long" % arguments[0])
        finally:
            for reader, _ in pipes:
                os.close(reader)
        return child.exit_code, output.text(), words.text()

    def must(self, *arguments, feed=None):
        code, output, words = self.run(*arguments, feed=feed)
        if code != 0:
            said = (words or output).strip() or "nothing"
            raise Refused("io", "git %s ended with %d and said: %s" % (arguments[0], code, said))
        return output

    def remove_stale_locks(self):
        """A killed git leaves its locks behind, and with them nothing can be committed."""
        if self.call.processes.running("git"):
            return
        names = ["index.lock", "HEAD.lock"]
        code, branch, _ = self.run("symbolic-ref", "-q", "HEAD")
        if code == 0 and branch.strip():
            names.append(branch.strip() + ".lock")
        for name in names:
            path = self.must("rev-parse", "--git-path", name).rstrip("\n")
            try:
                os.unlink(os.path.join(os.fsdecode(self.call.workspace.path), path))
            except OSError:
                pass

    def salvage(self, message):
        """Commits what is uncommitted, if anything. Tells whether it did."""
        if not self.must("status", "--porcelain", "--untracked-files=normal", *AGENTS_PATHS):
            return False
        # One unreadable file or unborn nested repository must not lose all the others.
        added, _, words = self.run("add", "-A", "--ignore-errors", *AGENTS_PATHS)
        staged, _, _ = self.run("diff", "--cached", "--quiet", "--ignore-submodules=none")
        if staged == 0:
            if added != 0:
                raise Refused("io", "git add ended with %d and said: %s" % (added, words.strip()))
            return False
        self.must("commit", "--quiet", "--no-verify", "--allow-empty-message", "-m", message)
        return True


class Spool:
    """A bundle on its way: small ones in memory, large ones in an unnamed file."""

    def __init__(self, call, limit):
        self.call, self.limit, self.size, self.error = call, limit, 0, None
        place = os.fsdecode(call.workspace.path)
        self.file = tempfile.SpooledTemporaryFile(max_size=4 * MIB, dir=place)

    def feed(self, chunk):
        self.size += len(chunk)
        if self.error is None and self.size > self.limit:
            self.fail(Refused("too_large", "the bundle is larger than %d bytes" % self.limit))
        if self.error is None:
            try:
                self.file.write(chunk)
            except OSError as error:
                self.fail(Refused("io", "cannot keep the bundle: %s" % error.strerror))

    def fail(self, error):
        """Ends git early: its deadline is now."""
        self.error = error
        self.call.deadline = time.monotonic()


def call_collect_git(call):
    base, message = call.field("base", str), call.field("message", str)
    limit = call.number_field("max_bytes")
    if not re.fullmatch("[0-9a-f]{40}([0-9a-f]{24})?", base):
        raise Refused("bad_request", "base %r is no object name" % base[:80])
    if "\0" in message or len(message) > 64 * KIB:
        raise Refused("bad_request", "the message is not usable")
    git = Git(call)
    git.remove_stale_locks()
    salvaged = git.salvage(message)
    head = git.must("rev-parse", "--verify", "HEAD^{commit}").strip()
    span = "%s..HEAD" % base
    if git.must("rev-list", "--count", span).strip() == "0":
        return {"head": None, "salvaged": salvaged, "has_bundle": False}, b""
    spool = Spool(call, limit)
    try:
        git.must("bundle", "create", "--quiet", "-", span, feed=spool.feed)
        if spool.error is not None:
            raise spool.error
        spool.file.seek(0)
    except Refused as error:
        spool.file.close()
        raise spool.error or error
    return {"head": head, "salvaged": salvaged, "has_bundle": True}, (spool.file, spool.size)

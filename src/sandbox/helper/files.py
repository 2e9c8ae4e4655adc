"""The workspace: the only directory in which file calls work. No link is followed, at no component,
whatever others do to the tree meanwhile; only regular files are opened.
"""

import errno
import hashlib
import os
import secrets
import stat

from frames import Refused
from limits import KIB
from text import printable


class Place:
    """A directory's descriptor and a name in it (None: the directory itself)."""

    def __init__(self, fd, name):
        self.fd, self.name = fd, name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def lstat(self):
        try:
            if self.name is None:
                return os.fstat(self.fd)
            return os.stat(self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Workspace:
    """The only directory in which file calls work. No link is followed, at no component."""

    def __init__(self, path):
        self.path = os.fsencode(path)
        self.fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def parts(self, path):
        if path.startswith(b"/"):
            root = self.path.rstrip(b"/")
            if path != root and not path.startswith(root + b"/"):
                raise Refused("unsafe", "%s is outside the workspace" % printable(path))
            path = path[len(root):]
        parts = [part for part in path.split(b"/") if part not in (b"", b".")]
        if b".." in parts:
            raise Refused("unsafe", "%s holds '..'" % printable(path))
        return parts

    def walk(self, path, make=False):
        """Opens the directory that holds `path`, component by component."""
        parts = self.parts(path)
        fd = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            for part in parts[:-1]:
                below = self.step(fd, part, path, make)
                os.close(fd)
                fd = below
        except BaseException:
            os.close(fd)
            raise
        return Place(fd, parts[-1] if parts else None)

    def step(self, fd, part, path, make):
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        if make:
            try:
                os.mkdir(part, 0o777, dir_fd=fd)
            except FileExistsError:
                pass
        try:
            return os.open(part, flags, dir_fd=fd)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            found = Place(fd, part).lstat()
            if found is not None and stat.S_ISLNK(found.st_mode):
                raise Refused("unsafe", "%s leads through a link" % printable(path))
            raise Refused("not_found", "%s is no directory in %s" % (printable(part), printable(path)))

    def directory(self, path):
        """A readable descriptor of a directory."""
        with self.walk(path) as place:
            found = self.existing(place, path)
            if stat.S_ISLNK(found.st_mode):
                raise Refused("unsafe", "%s is a link" % printable(path))
            if not stat.S_ISDIR(found.st_mode):
                raise Refused("not_found", "%s is no directory" % printable(path))
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(place.name or b".", flags, dir_fd=place.fd)

    @staticmethod
    def existing(place, path):
        found = place.lstat()
        if found is None:
            raise Refused("not_found", "%s does not exist" % printable(path))
        return found

    def open_file(self, place, path):
        """A regular file for reading. Non-blocking, since it may become a FIFO at any time."""
        require_regular(self.existing(place, path), path)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        file = os.fdopen(os.open(place.name, flags, dir_fd=place.fd), "rb", buffering=0)
        try:
            found = os.fstat(file.fileno())
            require_regular(found, path)
        except BaseException:
            file.close()
            raise
        return file, found

    def replace(self, place, content, path):
        """Puts a whole new file in the place of what is there, atomically and durably."""
        found = place.lstat() if place.name is not None else os.fstat(place.fd)
        if found is not None:
            require_regular(found, path)
        mode = stat.S_IMODE(found.st_mode) & 0o777 if found is not None else None
        name = b".fleet-%s.tmp" % secrets.token_hex(8).encode()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o666, dir_fd=place.fd)
        try:
            try:
                view = memoryview(content)
                while len(view):
                    view = view[os.write(fd, view):]
                if mode is not None:
                    os.fchmod(fd, mode)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(name, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        except BaseException:
            try:
                os.unlink(name, dir_fd=place.fd)
            except OSError:
                pass
            raise
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.fd)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def require_regular(found, path):
    if stat.S_ISDIR(found.st_mode):
        raise Refused("is_directory", "%s is a directory" % printable(path))
    if stat.S_ISLNK(found.st_mode):
        raise Refused("unsafe", "%s is a link" % printable(path))
    if not stat.S_ISREG(found.st_mode):
        raise Refused("unsafe", "%s is not a regular file" % printable(path))


def hash_file(call, file, limit, path):
    """Size and SHA-256 of a whole file that may grow meanwhile."""
    digest, size = hashlib.sha256(), 0
    while True:
        call.check()
        chunk = file.read(256 * KIB)
        if not chunk:
            return size, digest.hexdigest()
        size += len(chunk)
        if size > limit:
            raise too_large(path, limit)
        digest.update(chunk)


def too_large(path, limit):
    return Refused("too_large", "%s is larger than %d bytes" % (printable(path), limit))

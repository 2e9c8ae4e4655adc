"""The calls on files: read, fetch, write, edit, stat, list."""

import hashlib
import json
import os
import stat
import threading

from files import hash_file, too_large
from frames import Refused
from limits import (MAX_EDIT, MAX_HASHED, MAX_NAMES, MAX_READ, MAX_WRITE, MIB, NAMES_BUDGET)
from text import printable


def call_read(call):
    path = call.path()
    offset, limit = call.number_field("offset", 0), call.number_field("limit", MAX_READ)
    with call.workspace.walk(path) as place:
        file, found = call.workspace.open_file(place, path)
    with file:
        if found.st_size > MAX_HASHED:
            raise too_large(path, MAX_HASHED)
        size, digest = hash_file(call, file, MAX_HASHED, path)
        body = b""
        if offset < size:
            body = os.pread(file.fileno(), min(limit, MAX_READ), offset)
    return {"size": size, "sha256": digest}, body


def call_fetch(call):
    path, limit = call.path(), call.number_field("max_bytes")
    with call.workspace.walk(path) as place:
        file, found = call.workspace.open_file(place, path)
    try:
        if found.st_size > limit:
            raise too_large(path, limit)
        size, digest = hash_file(call, file, limit, path)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return {"size": size, "sha256": digest}, (file, size)


def refuse_git_pointer(call, path):
    """The workspace's `.git` says which repository it belongs to: not the model's to choose."""
    if call.workspace.parts(path)[:1] == [b".git"]:
        raise Refused("unsafe", "%s belongs to git and is not written" % printable(path))


def written(content, replaced):
    digest = hashlib.sha256(content).hexdigest()
    return {"size": len(content), "sha256": digest, "replaced": replaced}, b""


def call_write(call):
    path = call.path()
    refuse_git_pointer(call, path)
    if len(call.body) > MAX_WRITE:
        raise too_large(path, MAX_WRITE)
    with call.workspace.walk(path, make=True) as place:
        call.workspace.replace(place, call.body, path)
    return written(call.body, 0)


EDITING = threading.Lock()


def call_edit(call):
    path = call.path()
    refuse_git_pointer(call, path)
    with EDITING, call.workspace.walk(path) as place:
        file, found = call.workspace.open_file(place, path)
        with file:
            if found.st_size > MAX_EDIT:
                raise too_large(path, MAX_EDIT)
            before = bytearray()
            while len(before) <= MAX_EDIT:
                chunk = file.read(MIB)
                if not chunk:
                    break
                before += chunk
            if len(before) > MAX_EDIT:
                raise too_large(path, MAX_EDIT)
        after, replaced = edited(call, bytes(before), path)
        call.workspace.replace(place, after, path)
    return written(after, replaced)


def edited(call, before, path):
    """The content after an edit and how often it replaced."""
    old = call.field("old", str).encode("utf-8", "surrogatepass")
    new = call.field("new", str).encode("utf-8", "surrogatepass")
    everywhere = call.field("replace_all", bool, False)
    expected = call.header.get("expected_hash")
    if expected is not None and expected != hashlib.sha256(before).hexdigest():
        raise Refused("stale", "%s is not what expected_hash says; view it again" % printable(path))
    try:
        before.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("io", "%s is not UTF-8" % printable(path))
    if not old:
        raise Refused("bad_request", "old is empty")
    if old == new:
        raise Refused("no_change", "old and new are the same")
    count = before.count(old)
    if count == 0 or (count > 1 and not everywhere):
        raise Refused("ambiguous", "old occurs %d times in %s" % (count, printable(path)))
    if len(before) + count * (len(new) - len(old)) > MAX_WRITE:
        raise too_large(path, MAX_WRITE)
    return before.replace(old, new), count


def call_stat(call):
    path = call.path()
    with call.workspace.walk(path) as place:
        found = call.workspace.existing(place, path)
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
    return {"kind": kinds.get(stat.S_IFMT(found.st_mode), "other"), "size": found.st_size}, b""


def call_list(call):
    fd = call.workspace.directory(call.path())
    names, budget, truncated = [], NAMES_BUDGET, False
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                name = printable(os.fsencode(entry.name))
                budget -= len(json.dumps(name, ensure_ascii=False).encode()) + 2
                if len(names) == MAX_NAMES or budget < 0:
                    truncated = True
                    break
                names.append(name)
    finally:
        os.close(fd)
    return {"names": sorted(names), "truncated": truncated}, b""

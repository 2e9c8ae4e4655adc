"""Text of bytes that anybody may have written, bounded before it goes anywhere."""

import json


def printable(raw):
    """Text of bytes that need not be UTF-8: what is not becomes \\xNN."""
    return raw.decode("utf-8", "backslashreplace")


def clean(text):
    """Text without lone surrogates, which JSON on the other side refuses."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def bounded(text, limit):
    """At most about `limit` bytes of a text as JSON writes it: its beginning and its end."""
    text = clean(text)
    if len(json.dumps(text, ensure_ascii=False).encode()) <= limit + 2:
        return text
    # A character takes at most six bytes once escaped.
    keep = max(1, limit // 12)
    return "%s\n[... %d characters left out ...]\n%s" % (
        text[:keep], max(0, len(text) - 2 * keep), text[-keep:])

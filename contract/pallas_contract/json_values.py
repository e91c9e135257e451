"""How many values a text of JSON has, told before it is parsed: one takes 350 bytes of memory, and two of text."""

from __future__ import annotations


def _marks(text: bytes) -> int:
    return sum(text.count(mark) for mark in (b"[", b"{", b","))


def has_more_values(body: bytes, most: int) -> bool:
    """Return whether there are more than `most` values outside of strings, where a long text has its commas."""
    if len(body) <= most or _marks(body) <= most:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # a value has two strings at most, its key and itself
    if unescaped.count(b'"') > 4 * (most + 1):
        return True
    return sum(_marks(text) for text in unescaped.split(b'"')[::2]) > most

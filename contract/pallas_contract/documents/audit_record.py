"""Records of the gateway's audit: lines of JSON, each with a MAC over its own bytes, which name the one before.

A line is `{"seq":N, ..., "prev":"MAC","mac":"MAC"}`. The MAC is HMAC-SHA256 (RFC 2104) over the bytes before `,"mac":`,
so that nothing is written anew to check it; `prev` is the MAC of record N-1, and 64 zeros where a chain begins.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

BEGIN = "0" * 64
"""`prev` of the first record of a chain."""
SUFFIX = ".jsonl"
_PREFIX = "audit-"
_MAC = re.compile(rb',"mac":"([0-9a-f]{64})"\}')
_LENGTH = len(',"mac":""}') + 64
# `json.dumps` makes an encoder for each call of these forms; nothing that was read, or is written here, is in itself
_WRITTEN = json.JSONEncoder(separators=(",", ":"), check_circular=False)
_SORTED = json.JSONEncoder(separators=(",", ":"), sort_keys=True, check_circular=False)


class NotOurs(ValueError):
    """A line that nobody with the key has written."""


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain: the number of a record and its MAC, as `N:MAC` where it is shown."""

    seq: int
    mac: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.mac}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record that was written with the key. `fields` are all of it but its MAC."""

    link: Link
    prev: str
    fields: Mapping[str, Any]


def file_name(first: int) -> str:
    """Return the name of the file whose first record is number `first`; by name they are in order."""
    return f"{_PREFIX}{first:012}{SUFFIX}"


def first_of(name: str) -> int | None:
    """Return the number of the first record in a file of that name; None where it is no file of an audit."""
    digits = name.removeprefix(_PREFIX).removesuffix(SUFFIX)
    return int(digits) if name.startswith(_PREFIX) and digits.isascii() and digits.isdigit() else None


def sealed(key: bytes, fields: Mapping[str, Any], after: Link) -> tuple[bytes, Link]:
    """Return the line of a record with `fields` that follows `after`, with its newline, and its own place."""
    seq = after.seq + 1
    body = _WRITTEN.encode({"seq": seq, **fields, "prev": after.mac})[:-1].encode()
    mac = _mac(key, body)
    return b'%s,"mac":"%s"}\n' % (body, mac.encode()), Link(seq, mac)


def opened(key: bytes, line: bytes) -> Entry:
    """Return the record in a line, without its newline.

    Raises:
        NotOurs: it was not written so, or not with this key.
    """
    match = _MAC.fullmatch(line, max(0, len(line) - _LENGTH))
    if match is None:
        raise NotOurs("is no record")
    body = line[: match.start()]
    mac = match[1].decode()
    if not hmac.compare_digest(_mac(key, body), mac):
        raise NotOurs("was changed, or written with another key")
    fields = json.loads(body + b"}")
    return Entry(Link(fields["seq"], mac), fields["prev"], fields)


def arguments_digest(key: bytes, arguments: object) -> str:
    """Return what tells the arguments of two calls apart, and nothing else about them to who has no key.

    Keys of objects are sorted. Without the key whoever reads the audit could try values until the digest is right.
    """
    return _mac(key, b"arguments\n" + _SORTED.encode(arguments).encode())


def _mac(key: bytes, body: bytes) -> str:
    mac = _keyed(key).copy()
    mac.update(body)
    return mac.hexdigest()


@lru_cache(maxsize=8)
def _keyed(key: bytes) -> hmac.HMAC:
    return hmac.new(key, digestmod="sha256")

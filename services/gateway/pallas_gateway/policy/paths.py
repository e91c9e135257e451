"""Paths in arguments of tools, compared with those that a grant names (seed 004, Path Whitelists).

The bytes go on to the tool as they came, and nobody knows how it reads them: whether it decodes percent signs, or
normalises Unicode. So a path has several readings, and each must lie where the grant says. Links are nothing that can
be seen from here: the tool opens beneath a directory descriptor (`pallas_service.open_beneath`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

LONGEST = 4095
"""Characters of a path, as many as Linux takes bytes."""
MOST = 100
"""Paths in a list."""
MOST_CHARACTERS = 16_384
"""Characters of all paths in a list: each is read several times, and nothing else is served meanwhile."""
_ROUNDS = 3
"""Times that a path is decoded before it is one that nobody means."""
_FORMS: tuple[Literal["NFC", "NFKC"], ...] = ("NFC", "NFKC")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")

Parts = tuple[str, ...]
"""A path from its top; `/` is the first part of an absolute one."""


class _NoPath(ValueError):
    """Text that names no file in all readings, or one above where it begins."""


def parts(path: str) -> Parts:
    """Return the parts of a plain path, as a grant names it."""
    return _parts(path)


def lies_in(value: Any, folders: Sequence[Parts]) -> bool:
    """Return whether `value`, a path or a list of some, lies in one of `folders` however it is read."""
    if isinstance(value, list):
        if not 0 < len(value) <= MOST or not all(isinstance(path, str) for path in value):
            return False
        return sum(map(len, value)) <= MOST_CHARACTERS and all(lies_in(path, folders) for path in value)
    if not isinstance(value, str) or not value or len(value) > LONGEST:
        return False
    try:
        readings = {_parts(reading) for reading in _readings(value)}
    except ValueError:
        return False
    # in one and the same folder: readings in two of them would be two files
    return any(all(reading[: len(folder)] == folder for reading in readings) for folder in folders)


def _readings(path: str) -> set[str]:
    """Return `path` as a tool may read it: decoded and in Unicode's normal forms, in whatever order it does both."""
    readings: set[str] = set()
    forms = {path}
    for _ in range(_ROUNDS):
        # a percent sign of another width encodes something only after NFKC
        forms |= {unicodedata.normalize(form, reading) for reading in forms for form in _FORMS}
        readings |= forms
        forms = {unquote_to_bytes(form).decode("utf-8") for form in forms if _ENCODED.search(form)}
        if not forms:
            return readings
    raise _NoPath(path)


def _parts(path: str) -> Parts:
    if "\\" in path or any(unicodedata.category(character) in ("Cc", "Cs") for character in path):
        raise _NoPath(path)
    found = ["/"] if path.startswith("/") else []
    top = len(found)
    for part in path.split("/"):
        if part == "..":
            if len(found) == top:
                raise _NoPath(path)
            found.pop()
        elif part not in ("", "."):
            if not part.strip(" ."):
                raise _NoPath(path)  # `.. ` is `..` to some systems
            found.append(part)
    return tuple(found)

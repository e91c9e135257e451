"""A TOML file that people write -> its tables, or a line that says where it is none and what to do."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_POSITION = re.compile(r"(?P<text>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")


def read(name: str, text: str) -> dict[str, Any]:
    """Return the tables of a file with this name and text.

    Raises:
        ValueError: it is no TOML; one line, `FILE:LINE:COLUMN reason: remedy`.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _POSITION.fullmatch(str(error))
        end = len(text.splitlines())
        place = f"{match['line'] or end}:{match['column'] or 1}" if match else "1:1"
        raise ValueError(f"{name}:{place} {match['text'] if match else error}: write it as TOML") from None


def line_of(text: str, key: str) -> int:
    """Return the number of the first line that gives a key a value or names it as a table, 1 where none does."""
    pattern = rf"^[ \t]*(?:\[+)?[\"']?{re.escape(key)}[\"']?[ \t]*[=\]]"
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1

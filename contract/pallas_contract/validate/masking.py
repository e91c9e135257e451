"""Command lines and lines of output for people, without the secrets in them: in logs, reasons and problems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pallas_contract.validate import secret_shapes

HIDDEN = "***"
SHORTEST = 4
"""Characters of a value that is hidden wherever it stands; a shorter one is part of many words."""
LONGEST_COMMAND = 160

_SPACE = re.compile(r"\s")
_NAME_OF = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]*(?:=|:\s*)")
_PAIR = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?P<sign>[\"']?(?:=|:\s*)[\"']?)(?P<value>[^\s\"',;]+)")
_SCHEME = re.compile(r"\b(?P<scheme>basic|bearer)\s+\S{8,}", re.IGNORECASE)
_AFTER_SCHEME = re.compile(r"://(?P<rest>[^\s\"'`]+)")
"""The rest of a URL as people write it: a password may have `/` and `@` that are not escaped."""


def command_line(words: Sequence[str]) -> str:
    """Return a command line as it would be typed, what looks like a secret hidden, at most `LONGEST_COMMAND` long."""
    hidden = {index for index, _ in secret_shapes.in_arguments(words[1:])}
    shown = [*words[:1], *(_argument(word) if index in hidden else word for index, word in enumerate(words[1:]))]
    return shortened(
        " ".join(word if word and not _SPACE.search(word) else f"'{word}'" for word in shown), LONGEST_COMMAND
    )


def masked(text: str, values: Iterable[str] = ()) -> str:
    """Return `text` without any of `values`, and without what has the shape of a secret or stands under its name."""
    for value in sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    while match := secret_shapes.known_shape(text):
        text = f"{text[: match.start()]}{HIDDEN}{text[match.end() :]}"
    text = _AFTER_SCHEME.sub(_without_user, text)
    text = _SCHEME.sub(lambda match: f"{match['scheme']} {HIDDEN}", text)
    return _PAIR.sub(_pair, text)


def shortened(text: str, most: int) -> str:
    """Return `text` with at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _argument(word: str) -> str:
    name = _NAME_OF.match(word)
    return f"{name[0] if name and '://' not in word[: name.end() + 2] else ''}{HIDDEN}"


def _without_user(match: re.Match[str]) -> str:
    """Hide all before the last `@`: rather a path too much than half a password."""
    _, at, host = match["rest"].rpartition("@")
    return f"://{HIDDEN}@{host}" if at else match[0]


def _pair(match: re.Match[str]) -> str:
    secret = secret_shapes.is_secret_key(match["name"]) and secret_shapes.is_literal(match["value"])
    return f"{match['name']}{match['sign']}{HIDDEN}" if secret else match[0]

"""Server-sent events, and the pieces in which a model writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pallas_testing.model.exchange import Reply

_PIECE = re.compile(r"\s*\S+|\s+$")
_ARGUMENTS = 16
"""Characters of a tool call's arguments in one piece."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream; `token` marks those that carry a piece of the answer."""

    data: Any
    name: str = ""
    token: bool = False

    def encode(self) -> bytes:
        named = f"event: {self.name}\n" if self.name else ""
        data = self.data if isinstance(self.data, str) else dump(self.data)
        return f"{named}data: {data}\n\n".encode()


def read(body: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON of each event; the end mark of chat completions is none.

    Raises:
        ValueError: the data of an event is not JSON.
    """
    for block in re.split(r"\r?\n\r?\n", body.decode("utf-8", "replace")):
        lines = [line.removeprefix("data:").strip() for line in block.splitlines() if line.startswith("data:")]
        if lines and lines != ["[DONE]"]:
            yield json.loads("\n".join(lines))


def pieces(text: str) -> list[str]:
    """Return the words of a text, each with the space before it."""
    return _PIECE.findall(text)


def slices(arguments: str) -> list[str]:
    """Return the JSON of arguments in pieces, as a model sends them."""
    return [arguments[start : start + _ARGUMENTS] for start in range(0, len(arguments), _ARGUMENTS)]


def count(reply: Reply) -> int:
    """Return the tokens of a reply, as counted here: its pieces."""
    return len(pieces(reply.text)) + sum(len(slices(dump(dict(call.arguments)))) for call in reply.calls)


def dump(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def arguments(text: str) -> Mapping[str, Any]:
    """Return the arguments of a call that a client sent back, whatever its JSON is."""
    try:
        values = json.loads(text or "{}")
    except ValueError:
        return {"not JSON": text}
    return values if isinstance(values, dict) else {"not an object": values}

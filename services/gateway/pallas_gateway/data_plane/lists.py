"""Lists of what an agent offers, without what their caller may not call; nothing of them is kept for another one."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable
from typing import Any

from pallas_gateway.data_plane.headers import Pairs

METHODS = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
MOST = 4 << 20
"""Bytes of a list."""
_OTHERS = ("prompts", "resources", "resourceTemplates")
"""Keys of the lists that are not of tools."""
_FIELDS = frozenset({b"event", b"id", b"retry"})
"""Fields of an event beside its data; others, and comments, are ignored by clients (HTML, 9.2.6)."""
_SIZED = frozenset({b"cache-control", b"content-length"})


def filtered(data: bytes, *, stream: bool, tool: Callable[[str], bool], others: bool) -> bytes:
    """Return the answer `data`, with the tools that `tool` lets through, and other lists only with `others`.

    `stream` says that it is server-sent events, of which one has the list.

    Raises:
        ValueError: it cannot be read, so nobody knows what is in it.
    """
    if not stream:
        return _message(data, tool, others=others) if data.strip() else data
    blocks = data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n")
    return b"\n\n".join(_event(block, tool, others=others) for block in blocks)


def head(headers: Pairs, size: int) -> Pairs:
    """Return the headers of an answer that is another one for each caller."""
    kept = [pair for pair in headers if pair[0] not in _SIZED]
    return [*kept, (b"cache-control", b"no-store"), (b"content-length", str(size).encode())]


def without_replay(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request that asks for no old events: a list would come again as the agent has it."""
    return [pair for pair in headers if pair[0] != b"last-event-id"]


def _event(block: bytes, tool: Callable[[str], bool], *, others: bool) -> bytes:
    lines = block.split(b"\n")
    values = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    data = b"\n".join(values)
    fields = [line for line in lines if line.partition(b":")[0] in _FIELDS]
    if data.strip():
        fields.append(b"data: " + _message(data, tool, others=others))
    elif values:
        fields.append(b"data: ")
    return b"\n".join(fields)


def _message(data: bytes, tool: Callable[[str], bool], *, others: bool) -> bytes:
    try:
        message = json.loads(data)
    except RecursionError:
        raise ValueError("too deep") from None
    result = message.get("result") if isinstance(message, dict) else None
    if not isinstance(result, dict):
        if isinstance(message, dict):
            return data
        raise ValueError("no message of MCP")
    if any(not isinstance(result.get(key, []), list) for key in ("tools", *_OTHERS)):
        raise ValueError("no list")
    if "tools" in result:
        result["tools"] = [entry for entry in result["tools"] if _is_granted(entry, tool)]
    for key in _OTHERS if not others else ():
        if key in result:
            result[key] = []
    if "cacheScope" in result:
        result["cacheScope"] = "private"
    return json.dumps(message).encode()


def _is_granted(entry: Any, tool: Callable[[str], bool]) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str) and tool(entry["name"])

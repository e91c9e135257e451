"""The JSON object that a peer answers, as far as it can be sent on."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from pallas_contract.json_values import has_more_values
from pallas_gateway.data_plane import message
from pallas_gateway.own.peers.peer import Answer

_DEEPEST = 100
"""Objects and arrays in each other of an answer that is sent as an object."""


def structured(answer: Answer) -> dict[str, Any] | None:
    """Return the object of an answer: what stands alone under `result` is a value that servers of the SDK wrap."""
    body = answer.structured
    if body is not None and body.keys() != {"result"}:
        return body if _is_sendable(body) else None
    return _parsed(answer.text)


def value(answer: Answer) -> dict[str, Any] | None:
    """Return the object of an answer like `structured`, or what wraps a list, a number, a truth value or null.

    Their text has no type: a list of one object is that object, and one of more is nothing that can be parsed.
    """
    body = answer.structured
    if body is not None and body.keys() == {"result"} and not isinstance(body["result"], str | dict):
        return body if _is_sendable(body) else None
    return structured(answer)


def _parsed(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` is; None where it is none, or none that can be sent."""
    if text.lstrip()[:1] != "{" or has_more_values(text.encode(), message.MOST_VALUES):
        return None
    with suppress(ValueError, RecursionError):
        body = json.loads(text)
        if _is_sendable(body):
            return dict(body)
    return None


def _is_sendable(body: dict[str, Any]) -> bool:
    """Return whether `body` has a form in JSON and UTF-8, and nothing deeper than `_DEEPEST`."""
    try:
        # no NaN, which no JSON has, and no half of a surrogate pair, which has no form in UTF-8
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    layer: list[Any] = [body]
    for _ in range(_DEEPEST):
        layer = [value for parent in layer for value in (parent.values() if isinstance(parent, dict) else parent)]
        layer = [value for value in layer if isinstance(value, dict | list)]
    return not layer

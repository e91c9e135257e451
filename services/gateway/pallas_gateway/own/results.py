"""Results of the gateway's tools as seed 002 has them, from what an agent or a service answered."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import mcp_types as t

from pallas_gateway.data_plane import message
from pallas_gateway.own.arguments import Arguments, SearchKnowledgeBase
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peer import Answer, Peer

_DEEPEST = 100
"""Objects and arrays in each other of an answer that is sent as an object."""


def of_agent(answer: Answer, trace: str) -> t.CallToolResult:
    """Return the result of `ask_agent`; an answer that is a JSON object is the `response` as it is."""
    status = "error" if answer.failed else "success"
    body = structured(answer)
    response = {"answer": answer.text} if body is None else body
    return _result({"status": status, "response": response, "trace_id": trace, "model": None}, failed=answer.failed)


def of_service(answer: Answer, arguments: Arguments, peer: Peer) -> t.CallToolResult:
    """Return the result of a tool that `peer` has: its object, with `status` where it has none.

    Raises:
        Failed: it answers no object, or a search no list of `results`.
    """
    if answer.failed:
        return _result({"status": "error", "message": answer.text}, failed=True)
    body = structured(answer)
    if body is None:
        raise Failed("failed", f"{peer} answers no JSON object")
    if isinstance(arguments, SearchKnowledgeBase) and body.get("status", "success") == "success":
        results = body.get("results")
        if not isinstance(results, list):
            raise Failed("failed", f"{peer} answers no list of `results`")
        body |= {"results": results[: arguments.limit], "count": min(len(results), arguments.limit)}
    body = {"status": "success"} | body
    return _result(body, failed=body["status"] == "error")


def size(result: t.CallToolResult) -> int:
    """Return the characters of a result's text, which has all of it."""
    return sum(len(block.text) for block in result.content if isinstance(block, t.TextContent))


def _result(body: dict[str, Any], *, failed: bool) -> t.CallToolResult:
    content = t.TextContent(type="text", text=json.dumps(body))
    return t.CallToolResult(content=[content], structured_content=body, is_error=failed)


def structured(answer: Answer) -> dict[str, Any] | None:
    """Return the object of an answer: what stands alone under `result` is a value that servers of the SDK wrap."""
    body = answer.structured
    if body is not None and body.keys() != {"result"}:
        return body if _is_sendable(body) else None
    return _parsed(answer.text)


def _parsed(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` is; None where it is none, or none that can be sent."""
    if text.lstrip()[:1] != "{" or message.has_more_values(text.encode(), message.MOST_VALUES):
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

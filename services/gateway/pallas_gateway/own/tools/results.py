"""Results of the gateway's tools as seed 002 has them, from what an agent or a service answered."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as t

from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers.objects import structured
from pallas_gateway.own.peers.peer import Answer, Peer
from pallas_gateway.own.tools.arguments import Arguments, SearchKnowledgeBase


def of_agent(answer: Answer, trace: str) -> t.CallToolResult:
    """Return the result of `ask_agent`; an answer that is a JSON object is the `response` as it is."""
    status = "error" if answer.failed else "success"
    body = structured(answer)
    response = {"answer": answer.text} if body is None else body
    return _result(
        {"status": status, "response": response, "trace_id": trace, "model": answer.model}, failed=answer.failed
    )


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

"""The health tool (seed 000 section 2) and the plain pages beside it (seed 001, the list at its head)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from pallas_testing.conformance.evidence import HEALTH_TOOL, Agent, Pages, tool_named
from pallas_testing.conformance.requirement import Table, demand, not_asked
from pallas_testing.conformance.wire import Exchange

TABLE: Table[Agent] = Table()
PAGES: Table[Pages] = Table()
_QUICK = 1.0
"""Seconds in which the tool should complete (seed 000 section 2, Implementation Guidance)."""
_ELSEWHERE = (301, 302, 303, 307, 308, 401, 403, 404, 405, 421)
"""Statuses of a path at which the agent has no page that is open, which a gateway may well not pass on."""
_STATUSES = ("ok", "degraded", "error")


@TABLE.row("health.tool", "000, 2 Health Tool", "every agent has a tool `get_health`", after="agent.mcp")
def tool(evidence: Agent) -> str:
    demand(tool_named(evidence.tools, HEALTH_TOOL), evidence.tools, f"a tool named {HEALTH_TOOL}")
    return ""


@TABLE.row("health.arguments", "000, 2 Tool Definition", "it takes no arguments", after="health.tool")
def arguments(evidence: Agent) -> str:
    schema = (tool_named(evidence.tools, HEALTH_TOOL) or {}).get("inputSchema")
    known = schema if isinstance(schema, dict) else {}
    closed = known.get("type") == "object" and known.get("additionalProperties") is False
    right = '{"type": "object", "properties": {}, "additionalProperties": false}'
    demand(closed and not known.get("properties"), evidence.tools, right, f"inputSchema: {json.dumps(schema)}")
    return ""


@TABLE.row("health.description", "000, 2 Tool Definition", "it has a description", after="health.tool")
def description(evidence: Agent) -> str:
    text = (tool_named(evidence.tools, HEALTH_TOOL) or {}).get("description")
    demand(isinstance(text, str) and text.strip(), evidence.tools, "a text", f"description: {text!r}")
    return ""


@TABLE.row("health.result", "000, 2 Invocation", "it is called like any tool, with nothing", after="agent.mcp")
def result(evidence: Agent) -> str:
    answer = evidence.health[0]
    demand(answer.result and answer.result.get("isError") is not True, answer, "a result that is no error")
    return ""


@TABLE.row("health.block", "000, 2 Response", "it returns a single text block", after="health.result")
def block(evidence: Agent) -> str:
    content = evidence.health[0].result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    single = len(blocks) == len(texts) == 1 and isinstance(texts[0].get("text"), str)
    demand(single, evidence.health[0], "`content` with one block, of type text")
    return ""


@TABLE.row("health.object", "000, 2 Response", "the text is a JSON object", after="health.block")
def json_object(evidence: Agent) -> str:
    demand(_document(evidence.health[0]) is not None, evidence.health[0], 'a JSON object such as {"status": "ok"}')
    return ""


@TABLE.row("health.status", "000, 2 Status Values", "the status is one of three", after="health.object")
def status(evidence: Agent) -> str:
    value = _known(evidence).get("status")
    demand(value in _STATUSES, evidence.health[0], " or ".join(_STATUSES), f"status: {value!r}")
    return ""


@TABLE.row("health.timestamp", "000, 2 Fields", "a timestamp is ISO 8601", after="health.object")
def timestamp(evidence: Agent) -> str:
    value = _known(evidence).get("timestamp")
    right = "none, or a date and time such as 2026-03-12T15:42:00Z"
    demand(value is None or _is_time(value), evidence.health[0], right, f"timestamp: {value!r}")
    return ""


@TABLE.row("health.message", "000, 2 Fields", "what is not ok is explained by a message", after="health.status")
def message(evidence: Agent) -> str:
    document = _known(evidence)
    text = document.get("message")
    if document["status"] == "ok":
        demand(text is None or isinstance(text, str), evidence.health[0], "none, or a string", f"message: {text!r}")
    else:
        right = f"a text, because the status is {document['status']}"
        demand(isinstance(text, str) and text.strip(), evidence.health[0], right, f"message: {text!r}")
    return ""


@TABLE.row("health.quick", "000, 2 Implementation Guidance", "it completes in under a second", after="health.result")
def quick(evidence: Agent) -> str:
    fastest = min(evidence.health, key=lambda exchange: exchange.seconds)
    calls = len(evidence.health)
    received = f"{fastest.seconds:.1f} s in the fastest of {calls} calls"
    document = _document(fastest) or {}
    if fastest.seconds >= _QUICK and document.get("status") == "degraded":
        return f"{received}: degraded, and a probe of what it uses may take 3 s"
    demand(fastest.seconds < _QUICK, fastest, "an answer in under 1 s", received)
    return ""


@TABLE.row("health.no-model", "000, 2 Implementation Guidance", "it asks no model", after="health.result")
def no_model(evidence: Agent) -> str:
    if evidence.model_calls is None:
        not_asked("needs the model's side: the fixture with a scripted model")
    demand(evidence.model_calls == 0, evidence.health[0], "none", f"{evidence.model_calls} requests to the model")
    return ""


@PAGES.row("page.healthz", "001, To do", "/healthz says whether the LLM provider is valid")
def healthz(evidence: Pages) -> str:
    _own(evidence.healthz)
    body = evidence.healthz.messages[-1] if evidence.healthz.messages else {}
    named = [key for key in body if any(word in key.lower() for word in ("llm", "provider", "model"))]
    right = "HTTP 200, or 503 of an agent in error, and a JSON object with the state of the LLM provider"
    demand(evidence.healthz.status in (200, 503) and named, evidence.healthz, right)
    return ""


@PAGES.row("page.metrics", "001, To do", "/metrics serves Prometheus metrics")
def metrics(evidence: Pages) -> str:
    _own(evidence.metrics)
    demand(evidence.metrics.status == 200 and _samples(evidence.metrics.body), evidence.metrics, "Prometheus metrics")
    return ""


def _own(page: Exchange) -> None:
    """Leave a page unjudged that is not the agent's: before it stands a gateway, or another site has the path.

    Raises:
        NotAsked: it is none of the agent's.
    """
    if page.status in _ELSEWHERE or page.media_type == "text/html":
        not_asked(f"{page.sent} is no page of the agent: HTTP {page.status} {page.media_type}".rstrip())


def _samples(text: str) -> int:
    try:
        return sum(len(family.samples) for family in text_string_to_metric_families(text + "\n"))
    except (ValueError, IndexError, KeyError):  # whatever its parser makes of what are no metrics
        return 0


def _known(evidence: Agent) -> Mapping[str, Any]:
    return _document(evidence.health[0]) or {}


def _document(exchange: Exchange) -> Mapping[str, Any] | None:
    try:
        value = json.loads(exchange.result["content"][0]["text"])
    except (ValueError, RecursionError, LookupError, TypeError):  # of no other shape where `health.block` holds
        return None
    return value if isinstance(value, dict) else None


def _is_time(value: Any) -> bool:
    try:
        return "T" in value and bool(datetime.fromisoformat(value))
    except (ValueError, TypeError):
        return False

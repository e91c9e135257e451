"""Redaction of spans: names, numbers and ids of a known list leave the process, never what was said. Pure.

The libraries that make spans are free to put prompts, arguments, headers and texts of errors into them, and some do.
So what goes out is chosen here, by key, and not left to their settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import SpanKind, Status

from pallas_agent_runtime.telemetry import spans

OTHER = "_OTHER"
LONGEST = 200
"""Characters of a value that is no content."""

_PLAIN = frozenset(
    {"error.type", "exception.type", "jsonrpc.request.id", "mcp.method.name", "mcp.protocol.version"}
    | {"rpc.response.status_code", "server.address", "server.port", spans.TASK, spans.DEPTH, spans.PATH}
    | {f"gen_ai.{key}" for key in ("agent.name", "operation.name", "prompt.name", "provider.name", "tool.name")}
    | {f"gen_ai.request.{key}" for key in ("max_tokens", "model", "temperature", "top_k", "top_p")}
    | {f"gen_ai.response.{key}" for key in ("finish_reasons", "id", "model")}
    | {f"gen_ai.usage.{key}" for key in ("input_tokens", "output_tokens", "total_tokens")}
    | {f"gen_ai.usage.cache_{key}.input_tokens" for key in ("read", "creation")}
)
_CONTENT = frozenset(
    {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"}
    | {spans.ARGUMENTS, spans.RESULT}
)
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SENT = re.compile(r"MCP send \S+ (\S+)")
"""How the MCP SDK names a span of a client; the tool is nowhere else in it."""


def chooser(methods: frozenset[str], names: frozenset[str], *, content: bool) -> Callable[[ReadableSpan], ReadableSpan]:
    """Return a function that makes of a span what may be sent.

    `methods` and `names` (of tools and prompts) are what the agent itself knows: of what callers send, only these are
    told apart. `content` lets prompts, arguments and answers through; texts of errors and headers never.
    """
    allowed = _PLAIN | _CONTENT if content else _PLAIN

    def choose(span: ReadableSpan) -> ReadableSpan:
        attributes = {key: _short(key, value) for key, value in (span.attributes or {}).items() if key in allowed}
        if span.kind is SpanKind.SERVER:
            _clamp(attributes, methods, names)
        elif span.kind is SpanKind.CLIENT and (sent := _SENT.fullmatch(span.name)):
            attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": sent[1][:LONGEST]}
        return ReadableSpan(
            name=_name(attributes),
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes=attributes,
            events=[_event(event) for event in span.events],
            kind=span.kind,
            status=Status(span.status.status_code),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    return choose


def _clamp(attributes: dict[str, Any], methods: frozenset[str], names: frozenset[str]) -> None:
    """Replace what a caller can choose freely by one of a known set, or remove it."""
    if attributes.get("mcp.method.name") not in methods:
        attributes["mcp.method.name"] = OTHER
    for key in ("gen_ai.tool.name", "gen_ai.prompt.name"):
        if key in attributes and attributes[key] not in names:
            attributes[key] = OTHER
    if not _ID.fullmatch(str(attributes.get("jsonrpc.request.id", ""))):
        attributes.pop("jsonrpc.request.id", None)


def _short(key: str, value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) and key not in _CONTENT else value


def _event(event: Event) -> Event:
    attributes: Mapping[str, Any] = {key: value for key, value in (event.attributes or {}).items() if key in _PLAIN}
    return Event("exception" if event.name == "exception" else "event", attributes, event.timestamp)


def _name(attributes: Mapping[str, Any]) -> str:
    """Return the name by the conventions for MCP and GenAI: what is done, and with which tool, agent or model."""
    action = attributes.get("mcp.method.name") or attributes.get("gen_ai.operation.name") or "internal"
    subjects = ("gen_ai.tool.name", "gen_ai.prompt.name", "gen_ai.agent.name", "gen_ai.request.model")
    return " ".join([action, *[attributes[key] for key in subjects if key in attributes][:1]])

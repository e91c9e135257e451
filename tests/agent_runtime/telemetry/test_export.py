"""What is recorded, what may be sent, and when anything is."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from pallas_agent_runtime.telemetry import export, redact, spans
from pallas_service.telemetry.export import Exporter

METHODS, NAMES = frozenset({"tools/call", "ping"}), frozenset({"harper", "get_health"})
CALL = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "harper"}
SERVER = SpanKind.SERVER


def finished(choose: Any, name: str, kind: SpanKind, said: dict[str, Any], *, failure: str = "") -> ReadableSpan:
    """One span as it would be sent."""
    kept = InMemorySpanExporter()
    tracers = export.Provider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(Exporter(kept, choose)))
    with tracers.get_tracer("x").start_as_current_span(name, kind=kind, attributes=said) as span:
        if failure:
            span.record_exception(ValueError(failure))
            span.set_status(StatusCode.ERROR, failure)
    (sent,) = kept.get_finished_spans()
    return sent


def test_what_a_library_puts_into_a_span_stays_here_unless_it_is_known() -> None:
    said = {
        "gen_ai.headers": "Bearer x",
        "gen_ai.input.messages": "x",
        spans.ARGUMENTS: "x",
        "gen_ai.request.model": "m",
    }
    done = {"gen_ai.operation.name": "chat"}
    sent = finished(redact.chooser(METHODS, NAMES, content=False), "openai.chat x", SpanKind.CLIENT, said | done)
    assert (sent.name, dict(sent.attributes or {})) == ("chat m", {"gen_ai.request.model": "m", **done})


def test_the_opt_in_is_for_what_is_said_and_not_for_headers() -> None:
    said = {"gen_ai.headers": "Bearer x", "gen_ai.input.messages": "x" * 999, "gen_ai.operation.name": "chat"}
    sent = finished(redact.chooser(METHODS, NAMES, content=True), "x", SpanKind.CLIENT, said)
    assert dict(sent.attributes or {}) == {key: said[key] for key in said if key != "gen_ai.headers"}


def test_of_an_error_only_its_kind_is_told() -> None:
    sent = finished(redact.chooser(METHODS, NAMES, content=True), "x", SERVER, CALL, failure="secret")
    (event,) = sent.events
    assert (event.name, dict(event.attributes or {})) == ("exception", {"exception.type": "ValueError"})
    assert (sent.status.status_code, sent.status.description) == (StatusCode.ERROR, None)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (CALL, "tools/call harper"),
        (CALL | {"gen_ai.tool.name": "made up"}, "tools/call _OTHER"),
        ({"mcp.method.name": "made/up"}, "_OTHER"),
        ({"mcp.method.name": "ping", "jsonrpc.request.id": "a" * 65}, "ping"),
    ],
)
def test_names_that_callers_make_up_are_not_told_apart(said: dict[str, Any], name: str) -> None:
    sent = finished(redact.chooser(METHODS, NAMES, content=True), "made up", SERVER, said)
    assert sent.name == name
    assert "made" not in str(sent.attributes)
    assert "jsonrpc.request.id" not in (sent.attributes or {})


def test_a_call_to_another_server_names_the_tool() -> None:
    said = {"mcp.method.name": "tools/call"}
    sent = finished(redact.chooser(METHODS, NAMES, content=False), "MCP send tools/call find", SpanKind.CLIENT, said)
    assert sent.name == "tools/call find"


@pytest.mark.parametrize(
    ("said", "under_a_call", "recorded"),
    [
        (CALL, False, True),
        ({"mcp.method.name": "prompts/get"}, False, True),
        (CALL | {"gen_ai.tool.name": "get_health"}, False, False),
        ({"mcp.method.name": "tools/list"}, False, False),
        ({}, False, False),
        ({}, True, True),
        ({"mcp.method.name": "tools/list"}, True, True),
    ],
)
def test_a_trace_begins_with_a_call(said: dict[str, str], under_a_call: bool, recorded: bool) -> None:
    tracers = export.Provider(shutdown_on_exit=False)
    tracers.sampler = export.Calls(tracers.sampler)
    tracer = tracers.get_tracer("x")
    above = trace.set_span_in_context(tracer.start_span("x", attributes=CALL)) if under_a_call else None
    assert tracer.start_span("x", context=above, attributes=said).is_recording() is recorded


def test_fast_agents_own_spans_are_left_out_of_the_tree() -> None:
    tracers = export.Provider(shutdown_on_exit=False)
    with tracers.get_tracer("x").start_as_current_span("call") as call:
        for scope in ("fast_agent.mcp.mcp_aggregator", "fast-agent"):
            with tracers.get_tracer(scope).start_as_current_span("made") as made:
                assert not made.is_recording()
                inside = tracers.get_tracer("x").start_span("inside")
                assert isinstance(inside, ReadableSpan)
                assert inside.parent == call.get_span_context()

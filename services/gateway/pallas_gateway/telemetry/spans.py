"""Spans of what goes through the gateway, by the names and attributes of seed 002 (OpenTelemetry Instrumentation).

Needs the API only, which the MCP SDK imports anyway. Until somebody records, all of it does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

SCOPE = "pallas_gateway"
METHOD = "mcp.method.name"
TOOL = "mcp.tool.name"
TENANT = "mcp.tenant_id"
SESSION = "mcp.session_id"
USER = "mcp.user_id"
AGENT = "gen_ai.agent.name"
TASK = "pallas.task.id"
EXECUTE = "agent.execute"
_NAMES = {
    "tools/call": "mcp.tool.call",
    "resources/read": "mcp.resource.read",
    "prompts/get": "prompts/get",
    EXECUTE: EXECUTE,
}
"""Names of spans by the method of the request; others are no work of an agent, and have none."""
_SEARCH = "search_knowledge_base"
_LONGEST = 200
"""Characters of a value."""
_HEADERS = TraceContextTextMapPropagator()


class _Recorder:
    """The tracer of this process, where spans are recorded."""

    tracer: trace.Tracer | None = None


_recorder = _Recorder()
_begun: ContextVar[str] = ContextVar("begun", default="")
_within: ContextVar[bool] = ContextVar("within", default=False)


@contextmanager
def recorded_by(tracer: trace.Tracer) -> Iterator[None]:
    """Record what happens inside."""
    _recorder.tracer = tracer
    try:
        yield
    finally:
        _recorder.tracer = None


def begun() -> str:
    """Return the id that a trace is to have that begins now, 32 hexadecimal digits; empty where any will do."""
    return _begun.get()


def are_recorded() -> bool:
    """Return whether somebody records."""
    return _recorder.tracer is not None


@contextmanager
def request(method: str, traceparent: str, attributes: Mapping[str, str | None], trace_id: str = "") -> Iterator[None]:
    """Record a span around the answer to a request of a client.

    `traceparent` is the client's (W3C Trace Context), `trace_id` the id of a trace that begins here; both may be empty.
    """
    name = _NAMES.get(method)
    if _recorder.tracer is None or name is None:
        yield
        return
    # a task of a graph is part of that; else it is the client's, whose `tracestate` may say anything and ends here
    parent = None if _within.get() else _HEADERS.extract({"traceparent": traceparent}, Context())
    begun = _begun.set(trace_id)
    span = _recorder.tracer.start_span(
        name, parent, SpanKind.SERVER, attributes=_attributes({METHOD: method, **attributes})
    )
    _begun.reset(begun)
    within = _within.set(True)
    try:
        with _during(span):
            yield
    finally:
        _within.reset(within)


@contextmanager
def asking(kind: str, host: str, tool: str, task: str) -> Iterator[None]:
    """Record a span around a call of a member for the request around: an agent runs, or a service searches."""
    if _recorder.tracer is None:
        yield
        return
    name = "agent.run" if kind == "agent" else "search.vector" if tool == _SEARCH else f"tools/call {tool}"
    attributes = _attributes({TOOL: tool, AGENT: host if kind == "agent" else "", TASK: task})
    with _during(_recorder.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)):
        yield


def about(attributes: Mapping[str, str | None]) -> None:
    """Note on the span around what is known only now."""
    if _recorder.tracer is not None:
        trace.get_current_span().set_attributes(_attributes(attributes))


def failed(reason: str) -> None:
    """Note on the span around that what it is about has failed."""
    if _recorder.tracer is not None:
        span = trace.get_current_span()
        span.set_attribute("error.type", reason)
        span.set_status(StatusCode.ERROR)


def traceparent() -> str:
    """Return the header by which a peer takes part in the span around; empty where there is none."""
    if _recorder.tracer is None:
        return ""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


@contextmanager
def _during(span: trace.Span) -> Iterator[None]:
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield
        except BaseException as failure:
            # a word of the table of refusals, never the text of an error
            failed(getattr(failure, "reason", None) or type(failure).__qualname__)
            raise


def _attributes(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value[:_LONGEST] for key, value in values.items() if value}

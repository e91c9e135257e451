"""Additions of the runtime to the spans of the MCP SDK: the caller's trace, the task, the turn, and ids in log lines.

Without a collector nothing is recorded, but a caller's trace still goes along to whom the agent asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.typing import EventDict, WrappedLogger

from pallas_agent_runtime.calls.delegation import Task

TASK = "pallas.task.id"
DEPTH = "pallas.task.depth"
PATH = "pallas.task.path"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"

_HEADERS = TraceContextTextMapPropagator()
_tracer = trace.get_tracer("pallas_agent_runtime")


async def from_headers(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Continue the trace in the HTTP headers, unless `_meta` has one (SEP-414): middleware around the SDK's span."""
    headers = ctx.request.headers if ctx.request is not None else {}
    if "traceparent" not in headers or "traceparent" in (ctx.meta or {}):
        return await call_next(ctx)
    carrier = {"traceparent": headers["traceparent"]}  # `tracestate` is not for whom this agent asks: see `delegation`
    token = context.attach(_HEADERS.extract(carrier, context.Context()))
    try:
        return await call_next(ctx)
    finally:
        context.detach(token)


def about(task: Task) -> None:
    """Note on the current span which task the call is part of."""
    trace.get_current_span().set_attributes({TASK: task.id, DEPTH: task.depth, PATH: task.path})


def content(arguments: Mapping[str, Any], answer: str) -> None:
    """Note on the current span what was said, for those who asked for that."""
    trace.get_current_span().set_attributes({ARGUMENTS: json.dumps(arguments), RESULT: answer})


@contextmanager
def turn(agent: str) -> Iterator[None]:
    """Record a span around what the agent does with a question (semantic conventions for GenAI agents)."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    with _tracer.start_as_current_span(
        f"invoke_agent {agent}", attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except BaseException as failure:
            span.set_attribute("error.type", type(failure).__qualname__)
            span.set_status(trace.StatusCode.ERROR)
            raise


def ids(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Add the ids of the current span to a log line, so that it is found from a trace and the other way."""
    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        event["trace_id"] = f"{span.trace_id:032x}"
        event["span_id"] = f"{span.span_id:016x}"
    return event

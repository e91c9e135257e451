"""What the runtime adds to the spans of the MCP SDK: the caller's trace, the task, the turn, and ids in log lines.

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

TASK, DEPTH, PATH = "pallas.task.id", "pallas.task.depth", "pallas.task.path"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"

_HEADERS = TraceContextTextMapPropagator()
_tracer = trace.get_tracer("pallas_agent_runtime")


async def from_headers(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Middleware outside of the SDK's own span: the trace in the HTTP headers, unless `_meta` has one (SEP-414)."""
    headers = ctx.request.headers if ctx.request is not None else {}
    if "traceparent" not in headers or "traceparent" in (ctx.meta or {}):
        return await call_next(ctx)
    alone = {"traceparent": headers["traceparent"]}  # `tracestate` is not for whom this agent asks: see `delegation`
    token = context.attach(_HEADERS.extract(alone, context.Context()))
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
    """A span around what the agent does with a question (semantic conventions for GenAI agents)."""
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    with _tracer.start_as_current_span(
        f"invoke_agent {agent}", attributes=said, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except BaseException as failure:
            span.set_attribute("error.type", type(failure).__qualname__)
            span.set_status(trace.StatusCode.ERROR)
            raise


def ids(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """structlog processor: the ids of the current span, so that a line is found from a trace and the other way."""
    now = trace.get_current_span().get_span_context()
    if now.is_valid:
        event["trace_id"], event["span_id"] = f"{now.trace_id:032x}", f"{now.span_id:016x}"
    return event

"""The OpenTelemetry SDK set up for one agent: what is recorded, and what of it is sent."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, override

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.metrics import METHODS
from pallas_agent_runtime.telemetry import redact
from pallas_contract.documents import health
from pallas_contract.fleet import providers
from pallas_service.telemetry import export

log = structlog.get_logger(__name__)

_UNNAMED = ("fast_agent", "fast-agent")
"""Scopes that record nothing: fast-agent's own spans follow no convention, and one of them lasts as long as the
process, so that every call would be part of one trace."""
_BEGINNINGS = frozenset({"tools/call", "prompts/get"})


class Provider(TracerProvider):
    """A tracer provider without spans for fast-agent's own scopes; work inside them belongs to the span around."""

    def get_tracer(self, instrumenting_module_name: str, *args: Any, **more: Any) -> trace.Tracer:
        if instrumenting_module_name.startswith(_UNNAMED):
            return trace.NoOpTracer()
        return super().get_tracer(instrumenting_module_name, *args, **more)


class Calls(Sampler):
    """Sampler of traces that begin with a call or with the caller's own: not with a probe, of which there are many."""

    def __init__(self, then: Sampler) -> None:
        self._then = then

    @override
    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: trace.SpanKind | None = None,
        attributes: Mapping[str, Any] | None = None,
        links: Sequence[trace.Link] | None = None,
        trace_state: trace.TraceState | None = None,
    ) -> SamplingResult:
        span = attributes or {}
        begins = span.get("mcp.method.name") in _BEGINNINGS and span.get("gen_ai.tool.name") != health.TOOL
        if not begins and not trace.get_current_span(parent_context).get_span_context().is_valid:
            return SamplingResult(Decision.DROP)
        return self._then.should_sample(
            parent_context, trace_id, name, kind=kind, attributes=attributes, links=links, trace_state=trace_state
        )

    def get_description(self) -> str:
        return f"Calls({self._then.get_description()})"


@contextmanager
def exporting(settings: Settings, provider: str, tools: frozenset[str]) -> Iterator[None]:
    """Record spans inside and send them; `provider` is the prefix of the model whose requests are recorded too."""
    content = settings.trace_content
    os.environ["TRACELOOP_TRACE_CONTENT"] = str(content).lower()  # so that nothing is collected that is dropped anyway
    tracers = _provider(settings)
    trace.set_tracer_provider(tracers)
    with export.exporting(tracers, redact.chooser(METHODS, tools, content=content)):
        try:
            instrument(provider, tracers)
        except ImportError:  # fast-agent came without it
            log.warning("telemetry", note=f"requests to {provider} are not recorded")
        yield


def _provider(settings: Settings) -> Provider:
    fleet = settings.fleet
    tracers = Provider(**export.options(settings.slug, fleet=fleet.name, version=fleet.version))
    tracers.sampler = Calls(tracers.sampler)
    return tracers


def instrument(provider: str, tracers: Provider) -> None:
    """Record the requests to the active model provider, by the instrumentation that fast-agent itself comes with."""
    if not provider or provider in providers.OFFLINE:
        return
    row = providers.find(provider)
    module, _, instrumentor = (row.instrumentor if row else providers.DEFAULT_INSTRUMENTOR).partition(":")
    package = importlib.import_module(f"opentelemetry.instrumentation.{module}")
    getattr(package, instrumentor)().instrument(tracer_provider=tracers)

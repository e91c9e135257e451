"""The OpenTelemetry SDK set up for one agent: what is recorded, and how it reaches the collector.

Configured by the SDK's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES`,
`OTEL_BSP_...`). A collector that is not there costs spans and one log line, never an answer.
"""

from __future__ import annotations

import importlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, override

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.metrics import METHODS
from pallas_agent_runtime.telemetry import redact
from pallas_contract import __version__
from pallas_contract.documents import health
from pallas_contract.fleet import providers

log = structlog.get_logger(__name__)

LAST_FLUSH = 2.0
"""Seconds that the last spans get to leave when the process ends."""
MAX_TEXT = 8192
"""Characters of one attribute, where `OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT` does not say otherwise."""
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


class Exporter(SpanExporter):
    """Exporter of what `choose` makes of each span; logs once that the collector is lost, and once that it is back."""

    def __init__(self, inner: SpanExporter, choose: Callable[[ReadableSpan], ReadableSpan]) -> None:
        self._inner = inner
        self._choose = choose
        self._lost = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._inner.export([self._choose(span) for span in spans])
        except Exception as error:
            log.debug("telemetry_export", error=type(error).__name__)
            result = SpanExportResult.FAILURE
        lost = result is not SpanExportResult.SUCCESS
        if lost and not self._lost:
            log.warning("telemetry_lost", reason="the collector does not take spans; they are dropped until it does")
        elif self._lost and not lost:
            log.info("telemetry_back")
        self._lost = lost
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


@contextmanager
def exporting(settings: Settings, provider: str, tools: frozenset[str]) -> Iterator[None]:
    """Record spans inside and send them; `provider` is the prefix of the model whose requests are recorded too."""
    content = settings.trace_content
    os.environ["TRACELOOP_TRACE_CONTENT"] = str(content).lower()  # so that nothing is collected that is dropped anyway
    tracers = _provider(settings, redact.chooser(METHODS, tools, content=content))
    trace.set_tracer_provider(tracers)
    try:
        instrument(provider, tracers)
    except ImportError:  # fast-agent came without it
        log.warning("telemetry", note=f"requests to {provider} are not recorded")
    try:
        yield
    finally:
        # The processor would wait for a dead collector up to half a minute.
        last = threading.Thread(target=tracers.shutdown, daemon=True)
        last.start()
        last.join(LAST_FLUSH)


def _provider(settings: Settings, choose: Callable[[ReadableSpan], ReadableSpan]) -> Provider:
    about = {
        "service.name": settings.slug,
        "service.namespace": settings.fleet.name,
        "service.version": settings.fleet.version,
        "service.instance.id": str(uuid.uuid4()),
        "telemetry.distro.name": "pallas-kit",
        "telemetry.distro.version": __version__,
    }
    limit = None if "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in os.environ else MAX_TEXT
    tracers = Provider(
        resource=Resource.create(about).merge(OTELResourceDetector().detect()),  # the environment has the last word
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_attribute_length=limit),
    )
    tracers.sampler = Calls(tracers.sampler)
    tracers.add_span_processor(BatchSpanProcessor(Exporter(OTLPSpanExporter(), choose)))
    return tracers


def instrument(provider: str, tracers: Provider) -> None:
    """Record the requests to the active model provider, by the instrumentation that fast-agent itself comes with."""
    if not provider or provider in providers.OFFLINE:
        return
    row = providers.find(provider)
    module, _, instrumentor = (row.instrumentor if row else providers.DEFAULT_INSTRUMENTOR).partition(":")
    package = importlib.import_module(f"opentelemetry.instrumentation.{module}")
    getattr(package, instrumentor)().instrument(tracer_provider=tracers)

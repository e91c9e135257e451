"""The OpenTelemetry SDK set up for one process: how its spans reach the collector.

Configured by the SDK's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES`,
`OTEL_BSP_...`). A collector that is not there costs spans and one log line, never an answer.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from pallas_contract import __version__

log = structlog.get_logger(__name__)

LAST_FLUSH = 2.0
"""Seconds that the last spans get to leave when the process ends."""
MAX_TEXT = 8192
"""Characters of one attribute, where `OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT` does not say otherwise."""


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


def options(service: str, *, fleet: str, version: str) -> dict[str, Any]:
    """Return the arguments of a `TracerProvider` for `service`, a member of `fleet`."""
    about = {
        "service.name": service,
        "service.namespace": fleet,
        "service.version": version,
        "service.instance.id": str(uuid.uuid4()),
        "telemetry.distro.name": "pallas-kit",
        "telemetry.distro.version": __version__,
    }
    limit = None if "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in os.environ else MAX_TEXT
    return {
        "resource": Resource.create(about).merge(OTELResourceDetector().detect()),  # the environment has the last word
        "shutdown_on_exit": False,
        "span_limits": SpanLimits(max_attribute_length=limit),
    }


@contextmanager
def exporting(tracers: TracerProvider, choose: Callable[[ReadableSpan], ReadableSpan]) -> Iterator[None]:
    """Send what `tracers` record inside, as `choose` makes it of each span."""
    tracers.add_span_processor(BatchSpanProcessor(Exporter(OTLPSpanExporter(), choose)))
    try:
        yield
    finally:
        # The processor would wait for a dead collector up to half a minute.
        last = threading.Thread(target=tracers.shutdown, daemon=True)
        last.start()
        last.join(LAST_FLUSH)

"""The OpenTelemetry SDK set up for the gateway; imported where a collector is configured, and else not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gateway.telemetry import spans
from pallas_service.telemetry import export


class Ids(RandomIdGenerator):
    """Ids of spans; a trace that begins has the id that its answer names."""

    def generate_trace_id(self) -> int:
        return int(spans.begun(), 16) if spans.begun() else super().generate_trace_id()


@contextmanager
def exporting(fleet: ResolvedFleet) -> Iterator[None]:
    """Record the spans of the gateway inside, and send them. They are our own, so nothing has to be taken out."""
    # it tells of a lost collector with every batch, and with insides; `telemetry_lost` is told once
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    options = export.options(names.GATEWAY, fleet=fleet.name, version=fleet.version)
    tracers = TracerProvider(**options, id_generator=Ids())
    with export.exporting(tracers, _as_it_is), spans.recorded_by(tracers.get_tracer(spans.SCOPE)):
        yield


def _as_it_is(span: ReadableSpan) -> ReadableSpan:
    return span

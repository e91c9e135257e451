"""When spans are sent, and what is said of a collector that takes none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from pallas_service import telemetry
from pallas_service.telemetry import export


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "console,otlp"}, True),
    ],
)
def test_the_standard_variables_switch_it_on_and_off(environ: dict[str, str], wanted: bool) -> None:
    assert telemetry.enabled(environ) is wanted


class Flaky(SpanExporter):
    """A collector that is there, and is not."""

    def __init__(self, *moods: Any) -> None:
        self._moods = iter(moods)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        mood = next(self._moods)
        if isinstance(mood, Exception):
            raise mood
        return SpanExportResult.SUCCESS if mood else SpanExportResult.FAILURE


def test_a_lost_collector_is_told_once() -> None:
    exporter = export.Exporter(Flaky(True, False, ValueError(), False, True, True), lambda span: span)
    with structlog.testing.capture_logs() as lines:
        for _ in range(6):
            exporter.export([])
    assert [line["event"] for line in lines if line["log_level"] != "debug"] == ["telemetry_lost", "telemetry_back"]


def test_a_program_without_its_exporter_goes_on() -> None:
    def exporting() -> Any:
        raise ImportError

    with (
        structlog.testing.capture_logs() as lines,
        telemetry.recording(exporting, {"OTEL_EXPORTER_OTLP_ENDPOINT": "x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}),
    ):
        pass
    assert [line["event"] for line in lines] == ["telemetry", "telemetry_off"]
    with telemetry.recording(exporting, {}):
        pass

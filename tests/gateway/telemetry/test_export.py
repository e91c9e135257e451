"""Spans of the gateway on their way to a collector, by OTLP over HTTP."""

from __future__ import annotations

import os

import pytest

from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.telemetry import export, spans
from pallas_service import telemetry
from tests.collector import running

FLEET = resolve(
    Fleet.model_validate({"name": "doors", "version": "2.0.1", "agents": {"scout": {"card": "a.md", "port": 8101}}})
)


def test_they_are_there_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with (
            telemetry.recording(lambda: export.exporting(FLEET), os.environ),
            spans.request("tools/call", "", {spans.TOOL: "ask_agent", spans.TENANT: "acme"}, "5d" * 16),
            spans.asking("agent", "scout", "send_message", ""),
        ):
            told = spans.traceparent()
        (run, call) = collector.spans()
    assert (call["name"], run["name"]) == ("mcp.tool.call", "agent.run")
    assert call["service"] == "gateway"
    assert call["attributes"][spans.TENANT] == "acme"
    assert run["parentSpanId"] == call["spanId"]
    assert told.split("-")[1] == "5d" * 16
    assert spans.traceparent() == ""  # nobody records any more

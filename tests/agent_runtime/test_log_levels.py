"""Which lines an agent logs."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from opentelemetry import trace

from pallas_agent_runtime import log_levels


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # a FastAgent that ran in this process keeps its lines to itself
    monkeypatch.setattr(logging.getLogger("fast_agent"), "propagate", True)
    known = [logging.getLogger(name) for name in ("", "pallas_agent_runtime", "fast_agent", "opentelemetry")]
    before = [(logger, logger.level, logger.handlers[:]) for logger in known]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers
    structlog.reset_defaults()


def test_our_own_news_and_the_troubles_of_others() -> None:
    stream = io.StringIO()
    log_levels.configure("demo", "harper", "json", stream)
    structlog.get_logger("pallas_agent_runtime.serve").info("ready", address="0.0.0.0:8080")
    logging.getLogger("mcp.server").info("new session 0123")
    logging.getLogger("mcp.server").warning("trouble")
    logging.getLogger("fast_agent.tools").warning("the tool said: something private")
    logging.getLogger("fast_agent.tools").error("broken")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line["fleet"], line["agent"]) for line in lines] == [
        ("ready", "demo", "harper"),
        ("trouble", "demo", "harper"),
        ("broken", "demo", "harper"),
    ]


def test_a_line_names_the_trace_it_belongs_to_also_where_nothing_is_recorded() -> None:
    stream = io.StringIO()
    log_levels.configure("demo", "harper", "json", stream)
    log = structlog.get_logger("pallas_agent_runtime.x")
    with trace.use_span(trace.NonRecordingSpan(trace.SpanContext(1, 2, is_remote=True))):
        log.info("inside")
    log.info("outside")
    inside, outside = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (inside["trace_id"], inside["span_id"]) == (f"{1:032x}", f"{2:016x}")
    assert "trace_id" not in outside

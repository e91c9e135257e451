"""Log lines: one JSON object each, the same way out for our own lines and those of libraries."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.typing import EventDict, WrappedLogger

from pallas_service import logging as service_logging


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def _lines(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines_carry_time_level_event_first_then_what_is_bound() -> None:
    stream = io.StringIO()
    service_logging.configure("json", stream=stream, agent="harper")
    structlog.get_logger().info("started", port=8080, who="ü")
    (line,) = _lines(stream)
    assert list(line) == ["timestamp", "level", "event", "agent", "port", "who"]
    assert line["agent"] == "harper"
    assert "ü" in stream.getvalue()


def test_lines_of_libraries_look_the_same_and_name_their_logger() -> None:
    stream = io.StringIO()
    service_logging.configure("json", stream=stream, agent="harper")
    logging.getLogger("uvicorn.error").warning("listening on %d", 8080)
    logging.getLogger("noisy").debug("not shown")
    (line,) = _lines(stream)
    assert (line["event"], line["level"], line["logger"], line["agent"]) == (
        "listening on 8080",
        "warning",
        "uvicorn.error",
        "harper",
    )


def test_structlog_asks_as_it_did_before_25_4(monkeypatch: pytest.MonkeyPatch) -> None:
    def filter_by_level(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if logger.isEnabledFor(logging.getLevelNamesMapping()[method.upper()]):
            return event
        raise structlog.DropEvent

    monkeypatch.setattr(structlog.stdlib, "filter_by_level", filter_by_level)
    stream = io.StringIO()
    service_logging.configure("json", stream=stream)
    logging.getLogger().setLevel(logging.WARNING)
    structlog.get_logger().info("not shown")
    structlog.get_logger().error("shown")
    assert [line["event"] for line in _lines(stream)] == ["shown"]


def test_a_traceback_stays_in_its_line() -> None:
    stream = io.StringIO()
    service_logging.configure("json", stream=stream)
    try:
        raise KeyError("lost")
    except KeyError:
        structlog.get_logger().exception("failed")
        logging.getLogger("library").exception("failed too")
    ours, theirs = _lines(stream)
    assert "KeyError: 'lost'" in ours["exception"]
    assert "KeyError: 'lost'" in theirs["exception"]


def test_what_json_cannot_say_is_shown_as_text() -> None:
    stream = io.StringIO()
    service_logging.configure("json", stream=stream)
    structlog.get_logger().info("odd", value={1, 2} - {2})
    assert _lines(stream)[0]["value"] == "{1}"


def test_text_is_for_people_and_hides_local_variables() -> None:
    stream = io.StringIO()
    service_logging.configure("text", stream=stream, agent="harper")

    def fail(password: str) -> None:
        raise ValueError(f"wrong length {len(password)}")

    try:
        fail("hunter" + "2")
    except ValueError:
        structlog.get_logger().exception("login failed", port=1)
    assert "login failed agent=harper port=1" in stream.getvalue()
    assert "wrong length 7" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


def test_configuring_again_replaces_the_way_out() -> None:
    first, second = io.StringIO(), io.StringIO()
    service_logging.configure("json", stream=first)
    service_logging.configure("anything else means json", stream=second)
    structlog.get_logger().info("once")
    assert first.getvalue() == ""
    assert _lines(second)[0]["event"] == "once"

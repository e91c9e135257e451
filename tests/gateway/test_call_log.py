"""The line of a call (seed 002, Logging)."""

from __future__ import annotations

from structlog.testing import capture_logs

from pallas_gateway.call_log import CallLog
from pallas_gateway.data_plane.record import Call, Record


def test_a_call_is_one_line_without_what_was_said() -> None:
    call = Call("scout", "ui", "tools/call", "ask_agent", tenant="acme", trace="ab" * 16, own=True)
    watcher = CallLog()
    with capture_logs() as lines:
        watcher.begin(call)
        watcher.end(Record(call, "answered", 200, 0.12345))
    assert lines == [
        {
            "event": "call",
            "log_level": "info",
            "agent": "scout",
            "caller": "ui",
            "tenant": "acme",
            "method": "tools/call",
            "name": "ask_agent",
            "outcome": "answered",
            "status": 200,
            "seconds": 0.1235,
            "trace_id": "ab" * 16,
        }
    ]


def test_names_from_outside_are_cut() -> None:
    call = Call("scout", "", "m" * 300, "n" * 300)
    with capture_logs() as lines:
        CallLog().end(Record(call, "answered", 200, 1))
    (line,) = lines
    assert (len(line["method"]), len(line["name"]), line["tenant"], line["caller"]) == (200, 200, None, None)
    assert line["trace_id"] is None

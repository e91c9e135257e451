"""Counts of the gateway, and the moment when nothing is under way."""

from __future__ import annotations

import pytest

from pallas_gateway.data_plane.record import END, LISTEN, SUBSCRIBE, Call, Record
from pallas_gateway.metrics import Metrics


def test_it_is_idle_once_all_calls_ended_whoever_still_listens() -> None:
    metrics = Metrics(["scout"])
    listening, call = Call("scout", "", LISTEN, http_method="GET"), Call("scout", "", "")
    metrics.begin(listening)
    assert metrics.idle.is_set()
    metrics.begin(call)
    metrics.begin(call)
    metrics.end(Record(Call("scout", "", "tools/call", "echo"), "answered", 200, 0.5))
    assert not metrics.idle.is_set()
    assert b"pallas_gateway_requests_in_flight 1.0" in metrics.render()
    metrics.end(Record(call, "hung_up", 0, 0.5))
    assert metrics.idle.is_set()
    metrics.end(Record(listening, "hung_up", 200, 4000.0))
    assert b"4000" not in metrics.render()


def test_who_listens_by_a_message_is_waited_for_no_longer_once_that_is_known() -> None:
    metrics = Metrics(["scout"])
    subscribed, refused = Call("scout", "", ""), Call("scout", "", "")
    metrics.begin(subscribed)
    metrics.begin(refused)
    subscribed.method = refused.method = SUBSCRIBE
    metrics.listens(subscribed)
    assert not metrics.idle.is_set()
    metrics.end(Record(refused, "concurrency", 200, 0.5))
    assert metrics.idle.is_set()
    metrics.end(Record(subscribed, "hung_up", 200, 4000.0))
    assert metrics.idle.is_set()
    assert b"pallas_gateway_requests_in_flight 0.0" in metrics.render()
    assert b"4000" not in metrics.render()


@pytest.mark.parametrize("method", [LISTEN, END])
def test_a_body_cannot_claim_to_be_a_request_without_one(method: str) -> None:
    metrics = Metrics(["scout"])
    metrics.begin(Call("scout", "", ""))
    metrics.end(Record(Call("scout", "", method), "answered", 404, 0.5))
    assert metrics.idle.is_set()
    assert b"pallas_gateway_requests_in_flight 0.0" in metrics.render()
    assert method.encode() not in metrics.render()


def test_the_end_of_a_session_is_counted_as_one() -> None:
    metrics = Metrics(["scout"])
    ended = Call("scout", "", END, http_method="DELETE")
    metrics.begin(ended)
    metrics.end(Record(ended, "answered", 200, 0.5))
    assert b'mcp_method_name="_END"' in metrics.render()


def test_own_tools_have_the_metrics_of_the_seed_by_tool_and_tenant() -> None:
    metrics = Metrics(["scout"])
    own = Call("scout", "ui", "tools/call", "ask_agent", tenant="acme", own=True)
    for outcome in ("answered", "timeout", "hung_up"):
        metrics.begin(own)
        metrics.end(Record(own, outcome, 200, 0.5))
    claimed = Call("scout", "ui", "tools/call", "a-name-of-the-callers", tenant="acme")
    metrics.begin(claimed)
    metrics.end(Record(claimed, "timeout", 200, 0.5))
    labels = b'{mcp_tenant_id="acme",mcp_tool_name="ask_agent"}'
    text = metrics.render()
    assert b"mcp_tool_duration_ms_sum" + labels + b" 1500.0\n" in text
    assert b"mcp_tool_errors_total" + labels + b" 1.0\n" in text
    assert b"a-name-of-the-callers" not in text

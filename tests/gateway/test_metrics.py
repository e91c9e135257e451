"""Counts of the gateway, and the moment when nothing is under way."""

from __future__ import annotations

import pytest

from pallas_gateway.data_plane.record import END, LISTEN, Call, Record
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

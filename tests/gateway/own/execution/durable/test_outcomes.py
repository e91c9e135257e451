"""Outcomes of tasks, which are the same after a restart."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError

from pallas_gateway.own.execution.durable import outcomes
from pallas_gateway.own.execution.envelope import Envelope
from pallas_gateway.own.execution.scheduler import Outcome
from pallas_gateway.own.failures import Failed, invalid

ERRORS: list[MCPError] = [
    Failed("rate", "Rate limit exceeded", 7),
    Failed("confirmation_required", "another caller must", more={"confirmation": "x"}),
    invalid("input.value", "Field required"),
]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_answered_alike(error: MCPError) -> None:
    read = outcomes.read(outcomes.written(Outcome("error", error=error, milliseconds=3)))
    assert read.error is not None
    assert (read.status, read.milliseconds, type(read.error)) == ("error", 3, type(error))
    assert Envelope({}, "a").refusal(read.error) == Envelope({}, "a").refusal(error)


def test_a_result_is_the_same() -> None:
    outcome = Outcome("success", {"value": [1.5, None, "é"]}, milliseconds=9)
    assert outcomes.read(outcomes.written(outcome)) == outcome

"""A provider, a client and a sub-agent that fail."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp import Client

from pallas_contract.documents import health
from tests.agent_runtime.pair.calls import DELEGATED, STATELESS, call, shown, text_of

pytestmark = [pytest.mark.slow, pytest.mark.waits]


async def test_a_providers_failure_is_an_error_result(fleet: Any, era: str, model: Any, toolkit: Any) -> None:
    model.broken = True
    try:
        result = await call(fleet, era, "harper", {"message": "x", "session_id": f"broken-{era}"})
    finally:
        model.broken = False
    assert result.is_error
    async with Client(fleet.url("harper"), mode=era) as client:
        assert (await client.get_prompt("harper_history", {"session_id": f"broken-{era}"})).messages == []
    await asyncio.to_thread(toolkit.until, lambda: shown(fleet, "ok"))  # the failed turn had its provider checked


async def test_a_client_that_goes_away_stops_the_turn(fleet: Any, model: Any, toolkit: Any) -> None:
    for event in (model.entered, model.released, model.abandoned):
        event.clear()
    waiting = asyncio.create_task(call(fleet, STATELESS, "harper", {"message": "slow"}))
    await asyncio.to_thread(model.entered.wait, 30)
    assert "pallas_calls_in_flight 1.0" in fleet.get("harper", "/metrics")[1]
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    idle = lambda: "pallas_calls_in_flight 0.0" in fleet.get("harper", "/metrics")[1] or None  # noqa: E731
    await asyncio.to_thread(toolkit.until, idle)
    assert await asyncio.to_thread(model.abandoned.wait, 30)
    model.released.set()


async def test_a_dead_sub_agent_degrades_and_comes_back(fleet: Any, era: str, toolkit: Any) -> None:
    fleet.kill("tech_research")
    degraded = await asyncio.to_thread(toolkit.until, lambda: shown(fleet, "degraded"))
    assert degraded["message"] == "Unreachable: tech_research"
    answer = await call(fleet, era, "get_health", {})
    assert health.parse(text_of(answer)) == ("degraded", "Unreachable: tech_research")
    assert answer.structured_content == json.loads(text_of(answer))
    assert text_of(await call(fleet, era, "harper", {"message": "still here"})) == "still here"
    fleet.start("tech_research")
    await asyncio.to_thread(fleet.wait, "tech_research")
    result = await call(fleet, era, "harper", {"message": "delegate what is pallas?"})
    assert text_of(result).split("\n\n") == DELEGATED  # at once, whatever the last probe found
    await asyncio.to_thread(toolkit.until, lambda: shown(fleet, "ok"))


async def test_nothing_said_is_logged(fleet: Any) -> None:
    await call(fleet, STATELESS, "harper", {"message": "delegate what is pallas?"})
    lines = [json.loads(line) for line in fleet.log("harper").read_text().splitlines()]
    assert {line["agent"] for line in lines} == {"harper"}
    assert {line["event"] for line in lines} >= {"configuration", "ready", "call", "downstream", "preflight"}
    assert not any("pallas?" in json.dumps(line) or "sk-from-dotenv" in json.dumps(line) for line in lines)

"""SIGTERM; the last tests of the pair, which is not there after them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.agent_runtime.pair.calls import call, text_of

pytestmark = pytest.mark.slow


async def test_sigterm_lets_an_open_call_finish_and_exits_cleanly(
    fleet: Any, era: str, model: Any, toolkit: Any
) -> None:
    model.entered.clear()
    model.released.clear()
    fleet.start("tech_research") if "tech_research" not in fleet.running else None
    await asyncio.to_thread(fleet.wait, "tech_research")
    answers: list[Any] = []

    async def ask() -> None:
        async with Client(fleet.url("tech_research"), mode=era) as client:
            await client.list_tools()  # else the client does so after its call, when nobody is there any more
            answers.append(await client.call_tool("tech_research", {"message": "slow"}))

    waiting = asyncio.create_task(ask())
    assert await asyncio.to_thread(model.entered.wait, 30)
    ending = asyncio.create_task(asyncio.to_thread(fleet.end, "tech_research"))
    draining = lambda: fleet.get("tech_research", "/readyz")[0] == 503 or None  # noqa: E731
    await asyncio.to_thread(toolkit.until, draining)
    late = await call(fleet, era, "tech_research", {"message": "late"}, agent="tech_research")
    assert (text_of(late), late.is_error) == ("the agent is shutting down", True)
    model.released.set()
    with contextlib.suppress(httpx2.ConnectError):  # a client of the handshake era comes back for its event stream
        await waiting
    assert [text_of(answer) for answer in answers] == ["slow"]
    assert await ending == 0


def test_sigterm_ends_the_streams_of_idle_sessions(fleet: Any) -> None:
    codes: list[int] = []

    async def listen() -> None:
        with contextlib.suppress(httpx2.ConnectError):  # it comes back for its stream, and nobody is there any more
            async with Client(fleet.url("harper"), mode="legacy") as client:
                await client.list_tools()  # the client keeps an event stream open
                codes.append(await asyncio.to_thread(fleet.end, "harper"))

    asyncio.run(listen())
    assert codes == [0]
    lines = [json.loads(line) for line in fleet.log("harper").read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert not [line for line in lines if line["level"] in ("error", "critical")]

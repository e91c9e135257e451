"""A registry that gets no processor: not in the table of faults, but it must not call others silent for it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.registry.faults import misbehaving as bad
from tests.registry.faults.ground import addresses, fleet, watched
from tests.registry.processes import DEADLINE, until
from tests.registry.registration_client import REGISTRATION, TOKENS, beat, register

pytestmark = [pytest.mark.slow, pytest.mark.waits]

STOPS = (20.0, 3.5, 3.5, 3.5, 3.5, 3.5)
"""Seconds: longer than any deadline."""
BETWEEN = 0.15
"""Seconds in which it runs: less than an agent needs to answer."""


async def send(url: str, message: dict[str, Any], by: dict[str, str]) -> int:
    """On a connection of its own: one that is kept is closed by a server that finds it too old when it runs again."""
    async with httpx.AsyncClient(timeout=DEADLINE) as client:
        return (await client.post(url, json=message, headers=by)).status_code


async def test_a_registry_that_is_stopped_turns_nobody_red(tmp_path: Path) -> None:
    agents = [bad.Agent(f"agent-{number}", bad.late(0.3)) for number in range(5)]
    names = [agent.name for agent in agents]
    async with AsyncExitStack() as stack:
        for agent in agents:
            await agent.start()
            stack.push_async_callback(agent.stop)
        port = fleet(tmp_path, names, interval=0.5)
        for name, token in TOKENS.items():
            (tmp_path / f"{name}.token").write_text(token)
        file = tmp_path / "agents.yaml"
        file.write_text(
            file.read_text().replace("registry: {probe_interval: 0.5}\n", "")
            + REGISTRATION.replace("registry:\n", "registry:\n  probe_interval: 0.5\n")
        )
        where = addresses({agent.name: agent.address for agent in agents})
        ground = await stack.enter_async_context(watched(tmp_path, port, PALLAS_ADDRESSES=where))
        url = f"{ground.client.base_url}/mcp"
        by = {"authorization": f"Bearer {TOKENS['partners']}"}
        said = register("guest", heartbeat_interval=4)
        assert (await ground.client.post(url, json=said, headers=by)).status_code == 200
        await ground.until("ok", [*names, "guest"])
        lost = await ground.gauge("pallas_registry_lost_seconds_total")
        for seconds in STOPS:
            ground.process.send_signal(signal.SIGSTOP)
            beating = asyncio.create_task(send(url, beat("guest"), by))
            await asyncio.sleep(seconds)  # the fault
            ground.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(BETWEEN)
            assert await beating == 200
        await ground.probes(2 * len(names))
        changes = [change for change in ground.changes if change.new != "ok"]
        assert changes == []
        assert {state for state, _ in (await ground.states()).values()} == {"ok"}
        assert await ground.gauge("pallas_registry_lost_seconds_total") - lost > sum(STOPS) - 2
        await agents[0].stop()
        await until(ground.states, lambda states: states[agents[0].name][0] == "error")

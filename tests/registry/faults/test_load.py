"""What faults cost the registry itself: memory, processor time, file descriptors."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.registry.faults import misbehaving as bad
from tests.registry.faults.ground import REFUSED, Ground, addresses, fleet, watched

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MEBIBYTE = 1 << 20
ROUNDS = 3
NOISE = 0.1
"""Seconds of processor time: the kernel counts in hundredths, and a short figure is some of them off."""


async def started(stack: AsyncExitStack, agents: list[bad.Agent]) -> str:
    for agent in agents:
        await agent.start()
        stack.push_async_callback(agent.stop)
    return addresses({agent.name: agent.address for agent in agents})


async def test_11_and_12_answers_of_any_size_take_no_memory(tmp_path: Path) -> None:
    """The peak is looked at, not what is left: the kernel keeps it in VmHWM, and forgets it when told to (proc(5)).

    One quiet round of three is enough: answers that take memory take it in each, and what a young process still sets
    up for itself, up to 0.8 MiB in the second round and the third, comes to an end.
    """
    ways = {"huge": bad.huge, "endless": bad.endless_events, "bomb": bad.gzip_bomb, "trailers": bad.trailers}
    agents = [bad.Agent(f"{name}-{number}", how) for name, how in ways.items() for number in range(2)]
    async with AsyncExitStack() as stack:
        where = await started(stack, agents)
        port = fleet(tmp_path, [agent.name for agent in agents], interval=0.5)
        ground = await stack.enter_async_context(watched(tmp_path, port, PALLAS_ADDRESSES=where))
        await ground.probes(80)
        taken = [await peak(ground)]
        while taken[-1] >= MEBIBYTE and len(taken) < ROUNDS:
            taken.append(await peak(ground))
        assert taken[-1] < MEBIBYTE, taken
        assert {state for state, _ in (await ground.states()).values()} == {"error"}


async def peak(ground: Ground) -> int:
    """Return the bytes that a round of probes takes at most on top of what was taken before it."""
    before = ground.memory("VmRSS")
    Path(f"/proc/{ground.process.pid}/clear_refs").write_text("5")
    await ground.probes(80)
    return ground.memory("VmHWM") - before


async def test_17_all_agents_die_at_once(tmp_path: Path, record_property) -> None:
    agents = [bad.Agent(f"agent-{number}") for number in range(100)]
    names = [agent.name for agent in agents]
    async with AsyncExitStack() as stack:
        where = await started(stack, agents)
        port = fleet(tmp_path, names, interval=1)
        ground = await stack.enter_async_context(watched(tmp_path, port, PALLAS_ADDRESSES=where))
        await ground.until("ok", names)
        quiet = await spent(ground)
        died = time.monotonic()
        await asyncio.gather(*(agent.stop() for agent in agents))
        dead = await spent(ground)
        await ground.until("error", names)
        assert max(change.at for change in ground.changes) - died <= REFUSED
        assert [len(ground.after(died, name)) for name in names] == [1] * len(names)
        record_property("CPU of 3 s", f"{quiet:.2f} s quiet, {dead:.2f} s after all 100 have died")
        assert dead <= 2 * quiet + NOISE


async def spent(ground: Ground) -> float:
    """Processor time of three seconds, three rounds of probes."""
    before = ground.cpu()
    await asyncio.sleep(3)  # the measurement
    return ground.cpu() - before


async def test_21_few_file_descriptors_are_no_fault_of_the_agents(tmp_path: Path) -> None:
    agents = [bad.Agent(f"agent-{number}", bad.late(0.3)) for number in range(100)]
    names = [agent.name for agent in agents]
    async with AsyncExitStack() as stack:
        where = await started(stack, agents)
        port = fleet(tmp_path, names, interval=1)
        ground = await stack.enter_async_context(
            watched(tmp_path, port, before=("prlimit", "--nofile=64"), PALLAS_ADDRESSES=where)
        )
        await ground.until("ok", names)
        await ground.probes(300)
        assert [change for change in ground.changes if change.new != "ok"] == []
        assert ground.process.returncode is None

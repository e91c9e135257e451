"""Faults 3 to 6: what the names say is wrong, late, or not to be had. Real look-ups, of a server of the test's own."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from pallas_contract import names
from pallas_registry.discovery.sighting import STALE
from tests.registry.faults import loopback_dns
from tests.registry.faults import misbehaving as bad
from tests.registry.faults.ground import REFUSED, Ground, asked, fleet, watched

pytestmark = [pytest.mark.slow, pytest.mark.waits, pytest.mark.root]

PERIOD = 1.0
"""Seconds between two looks, and between two probes."""
OUTAGE = 30.0
"""Seconds without DNS: several look-ups of each name, each with its confirmations."""
OTHERS = ("harper", "research")


@dataclass
class World:
    """A registry that finds its agents by DNS. Addresses are made from `net`, which no other run has."""

    ground: Ground
    dns: loopback_dns.Names
    stack: AsyncExitStack
    net: str
    used: int = 1

    async def agent(self, name: str, how: bad.Behaviour = bad.well, **about: object) -> bad.Agent:
        """A running agent on an address of its own, in the DNS under its name beside those that are there."""
        self.used += 1
        agent = bad.Agent(name, how, host=f"{self.net}.{self.used}", port=names.CONTAINER_PORT, **about)
        await agent.start()
        self.stack.push_async_callback(agent.stop)
        self.dns.records.setdefault(name, []).append(agent.host)
        return agent

    def undisturbed(self) -> None:
        """Of the agents that nothing was done to, only good was ever said.

        But that they are silent: they answer from this process, which a busy machine may keep waiting for seconds. Who
        asks at a wrong address of this machine is refused, at once.
        """
        others = [change for change in self.ground.changes if change.agent in OTHERS]
        assert [change for change in others if change.new != "ok" and "no answer in" not in change.reason] == []


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    net = f"127.{random.randint(64, 126)}.{random.randint(1, 254)}"
    async with AsyncExitStack() as stack:
        dns = await loopback_dns.serve(f"{net}.1")
        stack.callback(dns.transport.close)
        dns.records["registry"] = [f"{net}.1"]
        port = fleet(tmp_path, [*OTHERS, "scout"], interval=PERIOD)
        (tmp_path / "pallas-registry-started").touch()  # it waits for no agent: one of them is never there at first
        container = {"PALLAS_PLACEMENT": "container", "TMPDIR": str(tmp_path)}
        ground = watched(tmp_path, port, before=loopback_dns.asking(f"{net}.1", tmp_path), **container)
        world = World(await stack.enter_async_context(ground), dns, stack, net)
        for name in OTHERS:
            await world.agent(name)
        await world.ground.until("ok", OTHERS)
        yield world


async def test_3_a_removed_container_stays_listed(world: World) -> None:
    scout = await world.agent("scout")
    await world.ground.until("ok", ["scout"])
    began = time.monotonic()
    await scout.stop()
    del world.dns.records["scout"]
    await world.ground.until("error", ["scout"])
    assert time.monotonic() - began <= REFUSED
    await world.ground.said("scout", ("error", "name not found"))
    assert await world.ground.gauge('pallas_agent_replicas{agent="scout"}') == 0
    world.undisturbed()


async def test_4_a_recreated_container_is_found_at_its_new_address(world: World) -> None:
    old = await world.agent("scout")
    await world.ground.until("ok", ["scout"])
    await old.stop()
    world.dns.records["scout"].clear()
    began = time.monotonic()
    new = await world.agent("scout")
    await asked(new)
    assert new.asked[0].at - began <= PERIOD + 1, "an interval, and a second for a machine with other work"
    asked_before = len(old.asked)
    await world.ground.probes(10)
    await world.ground.until("ok", ["scout"])  # at once it could be that of the old address
    assert len(old.asked) == asked_before, "no connection is pinned to the old address"
    world.undisturbed()


async def test_5_dns_that_is_down_turns_nobody_red(world: World) -> None:
    await world.agent("scout")
    await world.ground.until("ok", ["scout"])
    began = time.monotonic()
    world.dns.silent = True
    for agent in (*OTHERS, "scout"):
        await world.ground.said(agent, ("ok", STALE.message))
    while time.monotonic() - began < OUTAGE:
        assert set((await world.ground.states()).values()) == {("ok", STALE.message)}
        await asyncio.sleep(0.2)
    world.dns.silent = False
    for agent in (*OTHERS, "scout"):
        await world.ground.said(agent, ("ok", ""))
    assert [change for change in world.ground.changes if change.at >= began] == []
    assert world.ground.process.returncode is None


async def test_6_the_address_of_another_service_is_not_ok(world: World) -> None:
    world.dns.records["scout"] = list(world.dns.records["research"])
    await world.ground.said("scout", ("degraded", "answers as research"))
    world.undisturbed()


async def test_each_replica_is_probed_and_their_differences_are_named(world: World) -> None:
    first = await world.agent("scout")
    second = await world.agent("scout", version="1.1.0", tools=("send_message", "search"))
    third = await world.agent("scout", bad.of_old)
    await world.ground.until("degraded", ["scout"])
    for agent in (first, second, third):
        await asked(agent)
    said = (
        f"replicas differ in version: 1.0.0 ({first.host}, {third.host}), 1.1.0 ({second.host}); "
        f"replicas differ in era: {bad.LEGACY} ({third.host}), {bad.MODERN} ({first.host}, {second.host}); "
        f"replicas differ in tools: search missing on {first.host}, {third.host}"
    )
    await world.ground.said("scout", ("degraded", said))
    await third.stop()
    world.dns.records["scout"].remove(third.host)
    second.version, second.tools = first.version, first.tools
    await world.ground.until("ok", ["scout"])
    assert await world.ground.gauge('pallas_agent_replicas{agent="scout"}') == 2
    await second.stop()
    await world.ground.said("scout", ("degraded", f"1 of 2 replicas: {second.host}: connection refused"))
    world.undisturbed()

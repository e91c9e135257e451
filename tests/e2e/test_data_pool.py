"""examples/03-data-pool in containers: agents of code, replicas that stand in for each other, and a soft edge."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client

from pallas_contract.documents import server_json
from pallas_testing.fleet.start import Running

from . import scenario
from .examples import copied_from
from .projects import edited
from .stack import Stack, running

pytestmark = pytest.mark.docker

ALL_OK = dict.fromkeys(("orchestrator", "planner", "binance-agent", "feature-extractor", "news-fetcher"), "ok")

REPLICAS = 3
"""Of binance_agent, whose replicas answer for each other."""


@pytest.fixture(scope="module")
def running_fleet(root, tmp_path_factory) -> Iterator[Running]:
    """The example with one replica more, up for all tests here."""
    more = "registry: {probe_interval: 1}\n"
    config = edited(root / "examples" / "03-data-pool", tmp_path_factory.mktemp("pool"), more=more)
    config.write_text(config.read_text().replace("replicas: 2", f"replicas: {REPLICAS}"))
    with running(config) as fleet:
        yield fleet


@pytest.fixture
async def up(running_fleet: Running) -> Stack:
    """The fleet with every agent ok, and each of the three replicas asked and well: a test may have ended one."""
    pool = Stack(running_fleet)
    await scenario.until_states(pool.url("registry"), ALL_OK, within=240)
    await scenario.until_probed(
        pool.url("registry"), "binance_agent", lambda: pool.seen_by_registry("binance_agent"), within=240
    )
    assert len(pool.seen_by_registry("binance_agent")) == REPLICAS
    return pool


async def report(stack: Stack, era: str = scenario.ERAS[0]) -> tuple[dict[str, Any], list[str]]:
    """What the orchestrator says about ACME, and its progress."""
    steps: list[str] = []

    async def progress(_: float, __: float | None, message: str | None) -> None:
        steps.append(message or "")

    async with Client(f"{stack.url('orchestrator')}/mcp", mode=era) as client:
        reply = await client.call_tool("send_message", {"message": "acme"}, progress_callback=progress)
    assert not reply.is_error, reply.content[0].text
    return json.loads(reply.content[0].text), steps


def host(part: dict[str, Any]) -> str:
    """The container that gave this part of a report."""
    return part["by"].rpartition(" on ")[2]


@pytest.mark.parametrize("era", scenario.ERAS)
async def test_the_plan_is_worked_through_with_its_branches_side_by_side(up, era):
    found, steps = await report(up, era)
    assert (found["symbol"], found["figures"]["result"]["features"]) == ("ACME", [0.15, 8.0])
    assert found["news"]["result"]["articles"] == ["ACME opens a second data centre", "Analysts agree about ACME"]
    assert host(found["prices"]) in {replica.id[:12] for replica in up.replicas("binance_agent")}
    prices, news, figures = (
        f"{name}/{name}__{name}" for name in ("binance_agent", "news_fetcher", "feature_extractor")
    )
    begun = {steps.index(f"{prices}: started"), steps.index(f"{news}: started")}
    assert begun == {0, 1}
    assert steps.index(f"{prices}: completed") < steps.index(f"{figures}: started")
    assert "newswire/headlines: completed" in steps  # what the pool does is passed on


async def test_a_replica_that_dies_is_stood_in_for(up):
    found, _ = await report(up)
    (asked,) = (replica for replica in up.replicas("binance_agent") if replica.id[:12] == host(found["prices"]))
    asked.kill()
    found, _ = await report(up)
    assert host(found["prices"]) != asked.id[:12]
    asked.start()


async def test_of_three_replicas_the_one_that_hangs_is_named(up):
    hangs = up.replicas("binance_agent")[-1]
    addresses = {network["IPAddress"] for network in hangs.attrs["NetworkSettings"]["Networks"].values()}
    hangs.pause()
    try:
        address = await hanging(up)
    finally:
        hangs.unpause()
    assert address in addresses
    await scenario.until_states(up.url("registry"), ALL_OK, within=60)


async def hanging(stack: Stack) -> str:
    """The address of the one replica of binance_agent that the registry calls silent, as soon as it does."""
    async with asyncio.timeout(30):
        while True:
            health = (await scenario.catalogue(stack.url("registry")))["binance-agent"]["_meta"][
                server_json.HEALTH_META
            ]
            if found := re.fullmatch("1 of 3 replicas: ([0-9.]+): no answer in 3 s", health.get("message", "")):
                assert health["status"] == "degraded"
                return found[1]
            await asyncio.sleep(0.2)


async def test_the_report_can_do_without_news(up):
    up.container("news_fetcher").stop()
    found, _ = await report(up)
    assert (found["news"]["result"], found["figures"]["result"]["features"]) == ({"articles": []}, [0.15, 8.0])
    assert "news_fetcher" in found["news"]["by"]
    expected = {**ALL_OK, "orchestrator": "degraded", "news-fetcher": "error"}
    await scenario.until_states(up.url("registry"), expected, within=60)
    up.container("news_fetcher").start()
    await scenario.until_states(up.url("registry"), ALL_OK, within=60)


def test_only_the_orchestrator_and_the_gateway_can_be_reached_from_outside(up):
    published = {name for name, item in up.containers().items() if any(item.ports.values())}
    assert published == {"orchestrator", "gateway", "registry"}


def test_the_gateway_reaches_whom_it_names_alone_and_no_agent_calls_it(up):
    reached = up.connections("gateway", "orchestrator", "newswire", "binance-agent", "exchange")
    assert reached == ["connected", "connected", "connected", "refused"]
    assert up.connections("orchestrator", "feature-extractor", "gateway") == ["connected", "refused"]
    assert up.connections("feature_extractor", "gateway") == ["refused"]


globals().update(copied_from("03-data-pool"))

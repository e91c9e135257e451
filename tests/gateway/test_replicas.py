"""Three gateways in front of one agent, with one PostgreSQL and one Valkey: confirmations and limits hold over all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pallas_contract.fleet.access_model import Gateway
from pallas_gateway.confirmation.gatekeeper import Gatekeeper
from pallas_gateway.confirmation.shared import SharedConfirmations
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.counters import Counters
from pallas_gateway.state.postgres import Postgres
from pallas_gateway.tenants import Tenants
from tests.gateway.confirmation.test_calls import FLEET, Counting, sent, tool_call
from tests.gateway.door import OWN, PHONE, UI, Door, opened
from tests.gateway.state import stores
from tests.gateway.state.stores import LIMIT
from tests.served import served

pytestmark = pytest.mark.valkey
GATEWAY = Gateway.model_validate(
    {
        "agents": ["scout"],
        "tenants": {"acme": {"callers": ["phone"], "requests": "10/minute", "concurrent": 1000}},
        "confirm": [{"agent": "scout", "tools": ["echo"], "by": ["ui"]}],
    }
)
FREE = Gateway.model_validate(
    {"agents": ["scout"], "tenants": {"acme": {"callers": ["phone"], "requests": "9999/minute", "concurrent": 1000}}}
    | {"confirm": [{"agent": "scout", "tools": ["echo"], "by": ["ui"]}]}
)


@dataclass
class Replicas:
    doors: list[Door]
    agent: Counting
    stores: list[SharedConfirmations]

    async def answers(self, count: int, body: dict[str, Any]) -> Counter[str]:
        """Send a call `count` times at once, to each door in turn, and return how often it ended in which way."""
        sending = (sent(self.doors[index % 3], "/agents/scout/mcp", body) for index in range(count))
        answers = await asyncio.gather(*sending)
        return Counter(answer["error"]["data"]["reason"] if "error" in answer else "" for answer in answers)


@asynccontextmanager
async def replicas(postgres: stores.Server, valkey: stores.Server, gateway: Gateway) -> AsyncIterator[Replicas]:
    agent = Counting()
    async with AsyncExitStack() as stack:
        served_at = await stack.enter_async_context(served(await stack.enter_async_context(agent.app())))
        doors = []
        shared = []
        for _ in range(3):
            store = Postgres(stores.postgres_url(postgres), "doors", seconds=LIMIT)
            stack.push_async_callback(store.close)
            counters = Counters(stores.valkey_url(valkey), "doors", seconds=LIMIT, window=86_400)
            stack.push_async_callback(counters.close)
            shared.append(SharedConfirmations(store))
            door = opened(
                {"scout": f"{served_at.base_url}/mcp"},
                tokens={"ui": UI, "phone": PHONE},
                own=OWN,
                fleet=FLEET,
                tenants=Tenants(gateway.tenants, shared=counters),
                policy=Policy(gateway, ["scout"]),
                gatekeeper=Gatekeeper(shared[-1]),
            )
            doors.append(await stack.enter_async_context(door))
            doors[-1].web.timeout = LIMIT
        yield Replicas(doors, agent, shared)


@pytest.fixture(scope="module")
def postgres() -> Iterator[stores.Server]:
    with stores.postgres() as running:
        yield running


@pytest.fixture
def valkey() -> Iterator[stores.Server]:
    with stores.valkey() as running:
        yield running


async def test_a_call_that_is_confirmed_at_one_runs_once_over_all(
    postgres: stores.Server, valkey: stores.Server
) -> None:
    body = tool_call("echo", text="x")
    async with replicas(postgres, valkey, FREE) as three:
        first = (await sent(three.doors[0], "/agents/scout/mcp", body))["error"]["data"]
        assert first["reason"] == "confirmation_required"
        assert await three.stores[1].decide(first["confirmation"], "ui", "approved")
        assert await three.answers(60, body) == {"": 1, "confirmation_required": 59}
        assert three.agent.runs == 1


async def test_a_tenant_has_its_limit_once_over_all(postgres: stores.Server, valkey: stores.Server) -> None:
    async with replicas(postgres, valkey, GATEWAY) as three:
        assert await three.answers(60, tool_call("steps_of_none", text="x")) == {"": 10, "rate": 50}
        assert three.agent.runs == 10

"""`agent.execute` to an agent that registered itself, a real MCP server of the SDK: as to one of the file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import mcp_types as t
import pytest

from pallas_contract.fleet.access_model import Gateway, Tenant
from pallas_gateway.data_plane import upstream
from pallas_gateway.own.execution.executions import Options
from pallas_gateway.own.execution.steps import Strangers
from pallas_gateway.own.peers import registered
from pallas_gateway.own.peers.registered import Directory, Registered
from pallas_gateway.policy.policy import Policy
from pallas_gateway.tenants import Tenants
from pallas_service.http.reach import Reach
from tests.gateway.door import OWN, PHONE, UI, Agent, Door, opened
from tests.gateway.own.execution.test_executions import ARTICLES, FLEET, REQUEST, NewsFetcher, execute, request
from tests.gateway.own.execution.test_graphs import graph, task
from tests.gateway.own.peers.registry import Registry
from tests.served import served

CLEANER = "data_cleaner"
GRANT = [{"caller": "phone", "agent": CLEANER, "tools": ["fetch_*"]}]


@asynccontextmanager
async def fleet(stranger: Agent, *reach: str, **more: Any) -> AsyncIterator[tuple[Door, Registry]]:
    """Yield a gateway before an agent of the file, and before `stranger`, which is registered."""
    registry = Registry(FLEET)
    async with asyncio.timeout(120), AsyncExitStack() as stack:
        own = await stack.enter_async_context(NewsFetcher().app())
        app = await stack.enter_async_context(stranger.app())
        registry.urls[CLEANER] = f"{(await stack.enter_async_context(served(app))).base_url}/mcp"
        url = await stack.enter_async_context(registry.served())
        allowed = Reach(reach or ["127.0.0.1"])
        asking = await stack.enter_async_context(upstream.session())
        outside = await stack.enter_async_context(registered.client(allowed))
        directory = Directory(url, {"data-cleaner": registry.name(CLEANER)})
        options = Options(strangers=Strangers(Registered(directory, allowed, asking), outside))
        around = {"fleet": FLEET, "tenants": Tenants({"desk": Tenant()}), "options": options} | more
        yield await stack.enter_async_context(opened({"news-fetcher": own}, **around)), registry


@pytest.fixture
async def stranger() -> NewsFetcher:
    return NewsFetcher()


async def test_the_message_of_the_seed_reaches_it(stranger: NewsFetcher) -> None:
    async with fleet(stranger) as (door, _):
        answer = await execute(door, request(agent_id=CLEANER))
        assert answer["result"] == {"articles": ARTICLES}
        assert stranger.metas[0]["io.pallas-kit/task"] == REQUEST["params"]["meta"]["task_id"]
        assert not {"authorization", "pallas-caller"} & set(stranger.heads[-1])
        assert [record.call.agent for record in door.noted.ended] == ["data-cleaner"]
        plan = graph(
            task("own", "fetch_recent_articles", {"symbol": "AAPL"}),
            task("theirs", "fetch_recent_articles", {"symbol": "AAPL"}, agent_id=CLEANER, depends_on=["own"]),
        )
        assert (await execute(door, plan))["meta"]["status"] == "success"


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        ({"function": "fetch"}, -32601, "unknown_function"),
        ({"input": {}}, -32602, "'symbol' is a required property"),
        ({"input": {"symbol": "FAIL"}}, -32000, "function_error"),
        ({"input": {"symbol": "ODD"}}, -32000, "function_error"),
        ({"agent_id": "data_cleanr"}, -32602, "unknown_agent"),
    ],
)
async def test_schemas_and_codes_are_those_of_agents_of_the_file(
    stranger: NewsFetcher, change: dict[str, Any], code: int, reason: str
) -> None:
    async with fleet(stranger) as (door, _):
        error = (await execute(door, request(**{"agent_id": CLEANER} | change)))["error"]
        assert (error["code"], error["data"]["reason"]) == (code, reason)


async def test_one_that_is_gone_or_out_of_reach_is_unreachable(stranger: NewsFetcher) -> None:
    async with fleet(stranger) as (door, registry):
        registry.urls.clear()
        error = (await execute(door, request(agent_id=CLEANER)))["error"]
        assert (error["code"], error["data"]) == (-32001, {"agent_id": CLEANER, "reason": "unreachable"})
        assert error["message"] == "agent `data-cleaner` is not registered at present"
        registry.urls[CLEANER] = "http://127.0.0.1:1/mcp"
        assert "refuses connections" in (await execute(door, request(agent_id=CLEANER)))["error"]["message"]
    async with fleet(stranger, "10.20.0.0/16") as (door, _):
        error = (await execute(door, request(agent_id=CLEANER)))["error"]
        assert (error["code"], error["data"]["reason"]) == (-32001, "unreachable")
        assert "`registry.registration.reach` does not allow" in error["message"]
    assert stranger.heads == []


async def test_grants_hold_and_who_has_none_learns_nothing(stranger: NewsFetcher) -> None:
    policy = Policy(Gateway.model_validate({"agents": ["news_fetcher"], "registered": [CLEANER], "grants": GRANT}))
    tenants = Tenants({"desk": Tenant(callers=["ui", "phone"])})
    around: dict[str, Any] = {"tokens": {"ui": UI, "phone": PHONE}, "own": OWN, "tenants": tenants, "policy": policy}
    async with fleet(stranger, **around) as (door, registry):
        asked: list[tuple[int, str]] = []
        for token, function in ((UI, "fetch_recent_articles"), (PHONE, "send_message")):
            heads = {"authorization": f"Bearer {token}"}
            reply = await door.web.post("/mcp", json=request(agent_id=CLEANER, function=function), headers=heads)
            error = reply.json()["error"]
            asked.append((error["code"], error["data"]["reason"]))
        assert asked == [(-32602, "unknown_agent"), (-32601, "not_granted")]
        assert registry.asked == 0
        reply = await door.web.post("/mcp", json=request(agent_id=CLEANER), headers=heads)
        assert reply.json()["result"] == {"articles": ARTICLES}


class Costly(NewsFetcher):
    """One whose schemas have a pattern that takes a second for what it is asked and answers, and could take a year."""

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        schema = {"type": "object", "properties": {"symbol": {"type": "string", "pattern": "^(a+)+$"}}}
        tool = t.Tool(name="fetch_recent_articles", input_schema=schema, output_schema=schema)
        return t.ListToolsResult(tools=[tool])

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        return t.CallToolResult(content=[], structured_content=dict(params.arguments or {}))


async def test_a_pattern_of_a_stranger_stops_nothing() -> None:
    async with fleet(Costly()) as (door, _):
        asked = {"symbol": "a" * 26 + "!"}
        assert (await execute(door, request(agent_id=CLEANER, input=asked)))["result"] == asked
        error = (await execute(door, request(agent_id=CLEANER, input={"symbol": 1})))["error"]
        assert (error["code"], error["data"]["reason"]) == (-32602, "1 is not of type 'string'")

"""Grants and routes at `/mcp`: what a caller is shown, may ask for, and where it is led."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as t
import pytest

from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.policy.policy import Policy
from pallas_gateway.tenants import Tenants
from tests.gateway.door import OWN, PHONE, UI, Agent, Door, opened

AGENTS = {"scout": {"card": "a.md", "port": 8101}, "oracle": {"card": "a.md", "port": 8102}}
FLEET = resolve(Fleet.model_validate({"name": "x", "agents": AGENTS}))
TOOLS = {"create_agent": "memory", "lookup_entity": "memory"}
GATEWAY = {
    "agents": ["scout", "oracle"],
    "tenants": {"acme": {"callers": ["ui", "phone"]}},
    "tools": TOOLS,
    "grants": [
        {"caller": "ui", "agent": "scout", "tools": ["scout"]},
        {"caller": "ui", "agent": "scout", "tools": ["read"], "paths": {"path": ["tasks/home/"]}},
        {"caller": "ui", "service": "memory", "tools": ["lookup_*"]},
        {"caller": "phone", "service": "memory", "tools": ["ask_agent"]},
    ],
    "routes": [{"caller": "ui", "agent": "scout"}],
}
LOOKUP = {"entity_type": "person", "query": "Ada", "tenant_id": "acme"}


class Member(Agent):
    """An agent and service in one, which notes the tools that are called."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.called: list[str] = []

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        schema = {"type": "object"}
        return t.ListToolsResult(tools=[t.Tool(name=name, input_schema=schema) for name in ("scout", "read", "wipe")])

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        self.called.append(params.name)
        body = {"agents": [{"uri": "agentlet://user/mine"}]} if params.name == "list_agents" else {"answer": self.name}
        return t.CallToolResult(content=[], structured_content=body)


class Stand:
    """A gateway with grants, and who is behind it."""

    def __init__(self, door: Door, members: dict[str, Member]) -> None:
        self.door = door
        self.members = members

    async def ask(self, method: str, params: dict[str, Any], token: str = UI) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = await self.door.web.post("/mcp", json=body, headers={"authorization": f"Bearer {token}"})
        assert reply.status_code == 200
        return reply.json()

    async def call(self, tool: str, arguments: dict[str, Any], token: str = UI) -> Any:
        return await self.ask("tools/call", {"name": tool, "arguments": arguments}, token)

    async def reason(self, method: str, params: dict[str, Any], token: str = UI) -> tuple[int, str]:
        error = (await self.ask(method, params, token))["error"]
        return error["code"], error["data"]["reason"]


@asynccontextmanager
async def opened_with(**keys: Any) -> AsyncIterator[Stand]:
    written = Gateway.model_validate({**GATEWAY, **keys})
    members = {name: Member(name) for name in ("scout", "oracle", "memory")}
    scout, oracle, memory = members.values()
    async with scout.app() as first, oracle.app() as second, memory.app() as third:
        behind = {"scout": first, "oracle": second, "memory": third}
        policy = Policy(written, AGENTS)
        options: dict[str, Any] = {"tenants": Tenants(written.tenants), "fleet": FLEET, "tools": TOOLS}
        async with opened(behind, tokens={"ui": UI, "phone": PHONE}, own=OWN, policy=policy, **options) as door:
            yield Stand(door, members)


def execute(agent: str, function: str, **value: Any) -> dict[str, Any]:
    return {"agent_id": agent, "function": function, "input": value, "meta": {"task_id": "t"}}


async def test_lists_show_what_may_be_called() -> None:
    async with opened_with() as stand:
        ui = (await stand.ask("tools/list", {}))["result"]["tools"]
        phone = (await stand.ask("tools/list", {}, PHONE))["result"]["tools"]
        assert [tool["name"] for tool in ui] == ["ask_agent", "lookup_entity"]
        assert [tool["name"] for tool in phone] == ["ask_agent"]  # of agents of users
        systems = {"uri": "system-agents://list"}
        listed = (await stand.ask("resources/read", systems))["result"]["contents"][0]["text"]
        assert ('"uri": "agentlet://scout"' in listed, "oracle" in listed) == (True, False)
        assert (await stand.ask("resources/read", systems, PHONE))["result"]["contents"][0]["text"] == "[]"
        assert await stand.reason("resources/read", {"uri": "agentlet://oracle"}) == (-32001, "unknown_agent")
        mine = {"uri": "my-agents://list"}
        assert (await stand.ask("resources/read", mine))["result"]["contents"][0]["text"] == "[]"
        assert "user/mine" in (await stand.ask("resources/read", mine, PHONE))["result"]["contents"][0]["text"]


async def test_the_console_offers_agents_that_may_be_asked() -> None:
    async with opened_with() as stand:
        for token, agents in ((UI, ["scout"]), (PHONE, [])):
            reply = await stand.door.web.get("/console/agents.json", headers={"authorization": f"Bearer {token}"})
            assert [agent["name"] for agent in reply.json()["agents"]] == agents


async def test_own_tools_call_what_is_granted() -> None:
    async with opened_with() as stand:
        asked = {"agent_uri": "scout", "tenant_id": "acme", "prompt": "x"}
        assert not (await stand.call("ask_agent", asked))["result"]["isError"]
        assert not (await stand.call("lookup_entity", LOOKUP))["result"]["isError"]
        assert (stand.members["scout"].called, stand.members["memory"].called) == (["send_message"], ["lookup_entity"])


REFUSED: list[tuple[str, dict[str, Any], str, tuple[int, str]]] = [
    ("ask_agent", {"agent_uri": "oracle", "prompt": "x"}, UI, (-32001, "unknown_agent")),
    ("ask_agent", {"agent_uri": "nobody", "prompt": "x"}, UI, (-32001, "unknown_agent")),
    ("ask_agent", {"agent_uri": "scout", "prompt": "x"}, PHONE, (-32001, "unknown_agent")),
    ("ask_agent", {"agent_uri": "agentlet://user/mine", "prompt": "x"}, UI, (-32602, "not_granted")),
    ("ask_agent", {"prompt": "x"}, PHONE, (-32001, "no_route")),
    ("lookup_entity", {"entity_type": "person", "query": "Ada"}, PHONE, (-32602, "not_granted")),
    (
        "create_agent",
        {"user_id": "u", "agent_name": "a", "description": "d", "output_schema": {}},
        UI,
        (-32602, "not_granted"),
    ),
]


async def test_what_is_not_granted_reaches_nobody() -> None:
    async with opened_with() as stand:
        for tool, arguments, token, expected in REFUSED:
            params = {"name": tool, "arguments": {"tenant_id": "acme", **arguments}}
            assert (arguments, await stand.reason("tools/call", params, token)) == (arguments, expected)
        assert [member.called for member in stand.members.values()] == [[], [], []]


async def test_without_an_agent_a_caller_is_led_to_its_own() -> None:
    async with opened_with() as stand:
        answer = await stand.call("ask_agent", {"tenant_id": "acme", "prompt": "x"})
        assert answer["result"]["structuredContent"]["response"] == {"answer": "scout"}
        (ask, _) = (await stand.ask("tools/list", {}))["result"]["tools"]
        assert ask["inputSchema"]["required"] == ["tenant_id", "prompt"]


async def test_functions_of_agents_are_granted_as_tools() -> None:
    async with opened_with() as stand:
        assert "result" in await stand.ask("agent.execute", execute("scout", "read", path="tasks/home/a"))
        refused = {
            "wipe": execute("scout", "wipe"),
            "path": execute("scout", "read", path="tasks/work/a"),
            "missing": execute("scout", "read"),
            "other": execute("oracle", "read", path="tasks/home/a"),
        }
        reasons = {name: await stand.reason("agent.execute", params) for name, params in refused.items()}
        assert reasons == {
            "wipe": (-32601, "not_granted"),
            "path": (-32602, "path_not_granted"),
            "missing": (-32602, "path_not_granted"),
            "other": (-32602, "unknown_agent"),
        }
        # one that is granted and not there: who asks hears of no other tools than those that are granted
        error = (await stand.ask("agent.execute", execute("scout", "send_message")))["error"]
        assert error["message"] == "Method not found: agent `scout` has read, scout"
        assert stand.members["scout"].called == ["read"]


def task(name: str, function: str, value: Any) -> dict[str, Any]:
    return {"task_id": name, "agent_id": "scout", "function": function, "input": {"path": value}}


async def test_nothing_of_a_graph_runs_where_one_task_is_not_granted() -> None:
    async with opened_with() as stand:
        meta = {"task_id": "graph"}
        first = task("first", "read", "tasks/home/a")
        for second in (task("second", "wipe", "x"), task("second", "read", "tasks/work/a")):
            error = (await stand.ask("agent.execute", {"tasks": [first, second], "meta": meta}))["error"]
            assert (error["data"]["task_id"], error["data"]["reason"][-7:]) == ("second", "granted")
            assert stand.members["scout"].called == []
        # a path that comes from a result is judged when it is there
        second = task("second", "read", {"$from": "first", "path": "/answer"})
        error = (await stand.ask("agent.execute", {"tasks": [first, second], "meta": meta}))["error"]
        assert (error["data"]["task_id"], error["data"]["reason"]) == ("second", "path_not_granted")
        assert stand.members["scout"].called == ["read"]


async def test_each_call_of_a_batch_is_judged() -> None:
    async with opened_with() as stand:
        calls = [
            {"name": "lookup_entity", "arguments": LOOKUP},
            {"name": "ask_agent", "arguments": {"agent_uri": "oracle"}},
        ]
        calls[1]["arguments"] |= {"tenant_id": "acme", "prompt": "x"}  # type: ignore[operator]
        first, second = (await stand.ask("tools/call_batch", {"calls": calls}))["result"]["results"]
        assert (first["result"]["isError"], second["error"]["data"]["reason"]) == (False, "unknown_agent")


async def test_what_must_be_confirmed_is_not_run() -> None:
    rule = {"service": "memory", "tools": ["lookup_entity"], "by": ["phone"]}
    async with opened_with(confirm=[rule]) as stand:
        params = {"name": "lookup_entity", "arguments": LOOKUP}
        assert (await stand.reason("tools/call", params))[1] == "confirmation_required"
        assert stand.members["memory"].called == []


@pytest.mark.parametrize("tools", [["*"], ["list_agents"]])
async def test_agents_of_users_are_listed_only_by_a_call_that_is_confirmed(tools: list[str]) -> None:
    async with opened_with(confirm=[{"service": "memory", "tools": tools, "by": ["ui"]}]) as stand:
        for uri in ("my-agents://list", "agentlet://user/mine"):
            assert (await stand.reason("resources/read", {"uri": uri}, PHONE))[1] == "confirmation_required"
        assert stand.members["memory"].called == []
        # who may not ask them has none, and needs nobody's word for it
        assert (await stand.ask("resources/read", {"uri": "my-agents://list"}))["result"]["contents"][0]["text"] == "[]"

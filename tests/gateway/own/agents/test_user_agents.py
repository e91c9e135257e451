"""Agents that clients make through the gateway: kept by a real server of the SDK, used as seed 002 does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server import MCPServer
from starlette.types import ASGIApp

from pallas_contract.fleet.access_model import Tenant
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.data_plane.shares import Streams
from pallas_gateway.tenants import Tenants
from tests.gateway.door import OWN, PHONE, UI, Door, opened

FLEET = resolve(Fleet.model_validate({"name": "x", "agents": {"scout": {"card": "a.md", "port": 8101}}}))
TOKENS = {"ui": UI, "phone": PHONE}
MINE = "my-agents://list"
URI = "agentlet://user/user-123/helper"
CREATE: dict[str, Any] = {
    "user_id": "user-123",
    "agent_name": "helper",
    "description": "You help.",
    "output_schema": {"type": "object"},
}


class Workshop:
    """A service that keeps agents by tenant; `sessions` are the conversations that it was asked in."""

    def __init__(self) -> None:
        self.agents: dict[str, list[dict[str, Any]]] = {}
        self.sessions: list[str] = []

    @asynccontextmanager
    async def app(self) -> AsyncIterator[ASGIApp]:
        server = MCPServer("workshop", log_level="ERROR")

        @server.tool(structured_output=False)
        def create_agent(
            tenant_id: str, user_id: str, agent_name: str, description: str, output_schema: dict[str, Any]
        ) -> str:
            if agent_name == "fail":
                raise ValueError("no room")
            agent = {"uri": f"agentlet://user/{user_id}/{agent_name}", "description": description, **output_schema}
            self.agents.setdefault(tenant_id, []).append(agent)
            return json.dumps({"agent_uri": agent["uri"], "message": "Agent created successfully"})

        @server.tool(structured_output=False)
        def list_agents(tenant_id: str) -> str:
            return json.dumps({"agents": self.agents.get(tenant_id, [])})

        @server.tool(structured_output=False)
        def ask_agent(agent_uri: str, tenant_id: str, prompt: str, user_id: str = "", session_id: str = "") -> str:
            self.sessions.append(session_id)
            agents = [agent["description"] for agent in self.agents[tenant_id] if agent["uri"] == agent_uri]
            return json.dumps({"answer": f"{agents[0]} {prompt} {user_id}"}) if prompt else "prose"

        app = server.streamable_http_app(stateless_http=True)
        async with app.router.lifespan_context(app):
            yield app


@asynccontextmanager
async def before(
    workshop: Workshop,
    tokens: Mapping[str, str] | None = None,
    names: tuple[str, ...] = ("acme", "home"),
    *,
    streams: Streams | None = None,
) -> AsyncIterator[Door]:
    callers = dict(zip(names, TOKENS, strict=False))
    tenants = Tenants({name: Tenant(callers=[callers[name]] if tokens else []) for name in names})
    own = OWN if tokens else ""
    async with (
        asyncio.timeout(60),
        workshop.app() as app,
        opened(
            {"workshop": app},
            tokens=tokens,
            own=own,
            tenants=tenants,
            fleet=FLEET,
            tools={"create_agent": "workshop"},
            streams=streams,
        ) as door,
    ):
        yield door


async def ask(door: Door, method: str, params: dict[str, Any], token: str = "") -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    message = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
    body: dict[str, Any] = (await door.web.post("/mcp", json=message, headers=headers)).json()
    return body


async def call(door: Door, tool: str, arguments: dict[str, Any], token: str = "") -> dict[str, Any]:
    return await ask(door, "tools/call", {"name": tool, "arguments": arguments}, token)


async def read(door: Door, uri: str, token: str = "") -> Any:
    (contents,) = (await ask(door, "resources/read", {"uri": uri}, token))["result"]["contents"]
    return json.loads(contents["text"])


async def test_an_agent_that_a_user_has_made_is_listed_and_asked_like_any_other() -> None:
    workshop = Workshop()
    async with before(workshop, TOKENS) as door:
        assert await read(door, MINE, UI) == []
        created = await call(door, "create_agent", {**CREATE, "tenant_id": "acme"}, UI)
        assert created["result"]["structuredContent"]["agent_uri"] == URI
        schema = {"uri": URI, "description": "You help.", "type": "object"}
        assert await read(door, MINE, UI) == [schema]
        assert await read(door, URI, UI) == schema
        for uri in (URI, URI.removeprefix("agentlet://")):
            question = {"agent_uri": uri, "tenant_id": "acme", "prompt": "How?", "user_id": "user-123"}
            answered = (await call(door, "ask_agent", question, UI))["result"]["structuredContent"]
            assert answered == {
                "status": "success",
                "response": {"answer": "You help. How? user-123"},
                "trace_id": "ab" * 16,
                "model": None,
            }
        assert {record.call.agent for record in door.noted.ended} == {"workshop"}


async def test_another_tenant_has_none_of_it() -> None:
    workshop = Workshop()
    async with before(workshop, TOKENS) as door:
        await call(door, "create_agent", {**CREATE, "tenant_id": "acme"}, UI)
        assert await read(door, MINE, PHONE) == []
        refused = await ask(door, "resources/read", {"uri": URI}, PHONE)
        assert (refused["error"]["code"], refused["error"]["data"]) == (-32001, {"reason": "unknown_agent"})
        question = {"agent_uri": URI, "prompt": "How?", "session_id": "s"}
        stolen = await call(door, "ask_agent", {**question, "tenant_id": "acme"}, PHONE)
        assert stolen["error"]["data"] == {"reason": "unknown_tenant"}
        workshop.agents["home"] = workshop.agents["acme"]
        for tenant, token in (("acme", UI), ("home", PHONE)):
            await call(door, "ask_agent", {**question, "tenant_id": tenant}, token)
        assert len({*workshop.sessions, "s"}) == 3


@pytest.mark.parametrize(("names", "listed"), [(("acme",), 1), (("acme", "home"), 0)])
async def test_without_tokens_the_one_tenant_there_is_has_the_list(names: tuple[str, ...], listed: int) -> None:
    async with before(Workshop(), names=names) as door:
        await call(door, "create_agent", {**CREATE, "tenant_id": "acme"})
        assert len(await read(door, MINE)) == listed


async def test_without_a_service_there_are_none() -> None:
    tenants = Tenants({"acme": Tenant()})
    async with opened({"scout": "http://127.0.0.1:1/mcp"}, tenants=tenants, fleet=FLEET) as door:
        assert await read(door, MINE) == []
        unknown = await call(door, "ask_agent", {"agent_uri": URI, "tenant_id": "acme", "prompt": "How?"})
        assert (unknown["error"]["code"], unknown["error"]["message"]) == (-32001, f"Agent not found: {URI}")


async def test_a_service_without_a_list_has_failed() -> None:
    workshop = Workshop()
    workshop.agents["acme"] = {}  # type: ignore[assignment]
    async with before(workshop, TOKENS) as door:
        error = (await ask(door, "resources/read", {"uri": MINE}, UI))["error"]
        assert error["message"] == "service `workshop` gives no list of `agents`"
        assert error["data"] == {"reason": "failed"}

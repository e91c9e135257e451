"""Tools that a service of the fleet has: a real server of the SDK behind the gateway, asked as seed 002 does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp

from pallas_contract.fleet.access_model import Tenant
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.own.peers.peer import MOST
from pallas_gateway.tenants import Tenants
from tests.gateway.door import ERAS, OWN, PHONE, UI, Door, opened

FLEET = resolve(Fleet.model_validate({"name": "x", "agents": {"scout": {"card": "a.md", "port": 8101}}}))
TENANT = "acme"
SEARCH: dict[str, Any] = {"query": "returns", "tenant_id": TENANT}
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
CREATE: dict[str, Any] = {
    "tenant_id": TENANT,
    "user_id": "user-123",
    "agent_name": "my-custom-agent",
    "description": "You answer.",
    "output_schema": SCHEMA,
}
LOOKUP: dict[str, Any] = {"entity_type": "service", "query": "Express", "tenant_id": TENANT}


class Memory:
    """A service that has the three tools; `asked` are the arguments of all calls, by tool."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    @asynccontextmanager
    async def app(self) -> AsyncIterator[ASGIApp]:
        server = MCPServer("memory", log_level="ERROR")

        @server.tool()
        def search_knowledge_base(
            query: str, tenant_id: str, limit: int, knowledge_base: str = ""
        ) -> dict[str, Any] | str:
            self.asked.append(("search", {"query": query, "tenant": tenant_id, "limit": limit, "base": knowledge_base}))
            if query == "prose":
                return "nothing that is an object"
            if query == "nan":
                return {"results": [float("nan")]}
            if query == "large":
                return {"results": ["x" * (MOST // 3)]}
            if query == "no list":
                return {"results": 1}
            return {"results": [{"content": f"text {number}", "score": 0.9} for number in range(30)]}

        @server.tool(structured_output=False)
        def create_agent(
            tenant_id: str, user_id: str, agent_name: str, description: str, output_schema: dict[str, Any]
        ) -> str:
            uri = f"agentlet://user/{user_id}/{agent_name}"
            self.asked.append(("create", {"tenant": tenant_id, "schema": output_schema, "text": description}))
            return json.dumps({"agent_uri": uri, "message": "Agent created successfully"})

        @server.tool()
        def lookup_entity(entity_type: str, query: str, tenant_id: str, include_related: bool) -> dict[str, Any]:
            self.asked.append(("lookup", {"related": include_related}))
            if query == "nobody":
                raise ValueError("no such entity")
            return {"entity": {"type": entity_type, "name": query}, "related": []}

        app = server.streamable_http_app(stateless_http=True)
        async with app.router.lifespan_context(app):
            yield app


@asynccontextmanager
async def before(memory: Memory, tokens: dict[str, str] | None = None, **limits: Any) -> AsyncIterator[Door]:
    written = {TENANT: Tenant(callers=["ui"] if tokens else [], **limits), "other": Tenant(callers=["phone"])}
    tools = dict.fromkeys(("create_agent", "lookup_entity", "search_knowledge_base"), "memory")
    async with (
        asyncio.timeout(60),
        memory.app() as app,
        opened(
            {"memory": app},
            tokens=tokens,
            own=OWN if tokens else "",
            tenants=Tenants(written),
            fleet=FLEET,
            tools=tools,
        ) as door,
    ):
        yield door


async def answer(door: Door, tool: str, arguments: dict[str, Any], token: str = "") -> dict[str, Any]:
    """The JSON-RPC answer to the client of seed 002."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Content-Type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
    async with httpx.AsyncClient(timeout=60) as client:
        response = await client.post(f"{door.web.base_url}/mcp", json=request, headers=headers, timeout=60.0)
    assert response.status_code == 200
    body: dict[str, Any] = response.json()
    return body


async def result(door: Door, tool: str, arguments: dict[str, Any], token: str = "") -> dict[str, Any]:
    """The object in the text of the answer's result."""
    whole = (await answer(door, tool, arguments, token))["result"]
    body: dict[str, Any] = json.loads(whole["content"][0]["text"])
    assert body == whole["structuredContent"]
    assert bool(whole.get("isError")) == (body["status"] == "error")
    return body


async def test_the_tools_answer_in_the_shapes_of_the_seed() -> None:
    memory = Memory()
    async with before(memory) as door:
        searched = await result(door, "search_knowledge_base", SEARCH)
        assert searched == {
            "status": "success",
            "results": [{"content": f"text {number}", "score": 0.9} for number in range(5)],
            "count": 5,
        }
        most = await result(door, "search_knowledge_base", {**SEARCH, "limit": 20, "knowledge_base": "documents"})
        assert (most["count"], len(most["results"])) == (20, 20)
        assert await result(door, "create_agent", CREATE) == {
            "status": "success",
            "agent_uri": "agentlet://user/user-123/my-custom-agent",
            "message": "Agent created successfully",
        }
        assert await result(door, "lookup_entity", LOOKUP) == {
            "status": "success",
            "entity": {"type": "service", "name": "Express"},
            "related": [],
        }
        assert memory.asked == [
            ("search", {"query": "returns", "tenant": TENANT, "limit": 5, "base": ""}),
            ("search", {"query": "returns", "tenant": TENANT, "limit": 20, "base": "documents"}),
            ("create", {"tenant": TENANT, "schema": SCHEMA, "text": "You answer."}),
            ("lookup", {"related": False}),
        ]
        records = [(record.call.agent, record.call.name, record.outcome) for record in door.noted.ended]
        assert records[0] == ("memory", "search_knowledge_base", "answered")


@pytest.mark.parametrize("era", ERAS)
async def test_mcp_clients_of_both_eras_have_the_tools(era: str) -> None:
    async with before(Memory()) as door, httpx2.AsyncClient(timeout=60) as web:
        transport = streamable_http_client(f"{door.web.base_url}/mcp", http_client=web)
        async with Client(transport, mode=era) as client:
            tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
            assert list(tools) == ["ask_agent", "create_agent", "lookup_entity", "search_knowledge_base"]
            assert tools["search_knowledge_base"]["required"] == ["query", "tenant_id"]
            assert tools["search_knowledge_base"]["properties"]["limit"]["maximum"] == 20
            searched = await client.call_tool("search_knowledge_base", SEARCH)
            assert searched.structured_content is not None
            assert searched.structured_content["count"] == 5
            with pytest.raises(MCPError) as refused:
                await client.call_tool("search_knowledge_base", {**SEARCH, "limit": 21})
            assert (refused.value.code, refused.value.data["field"]) == (-32602, "limit")


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("search_knowledge_base", {**SEARCH, "limit": 21}, "limit"),
        ("create_agent", {**CREATE, "output_schema": {"type": "nonsense"}}, "output_schema"),
        ("delete_agent", LOOKUP, "name"),
    ],
)
async def test_arguments_are_checked_before_the_service_is_asked(
    tool: str, arguments: dict[str, Any], field: str
) -> None:
    memory = Memory()
    async with before(memory) as door:
        error = (await answer(door, tool, arguments))["error"]
        assert (error["code"], error["data"]["field"]) == (-32602, field)
    assert memory.asked == []


async def test_a_tenant_has_what_is_its_own_and_its_limits_hold() -> None:
    memory = Memory()
    async with before(memory, {"ui": UI, "phone": PHONE}, requests="1/minute") as door:
        refused = (await answer(door, "search_knowledge_base", SEARCH, PHONE))["error"]
        assert (refused["code"], refused["data"]) == (-32000, {"reason": "unknown_tenant"})
        assert memory.asked == []
        assert (await result(door, "lookup_entity", LOOKUP, UI))["status"] == "success"
        limited = (await answer(door, "search_knowledge_base", SEARCH, UI))["error"]
        assert (limited["code"], limited["data"]["reason"]) == (-32002, "rate")


async def test_a_service_that_fails_is_told_apart_from_one_that_answers_nonsense() -> None:
    async with before(Memory()) as door:
        failed = await result(door, "lookup_entity", {**LOOKUP, "query": "nobody"})
        assert failed["status"] == "error"
        assert failed["message"] == "Error executing tool lookup_entity"
        for query, words in (
            ("prose", "service `memory` answers no JSON object"),
            ("nan", "service `memory` answers no JSON object"),
            ("no list", "service `memory` answers no list of `results`"),
        ):
            error = (await answer(door, "search_knowledge_base", {**SEARCH, "query": query}))["error"]
            assert error == {"code": -32003, "message": words, "data": {"reason": "failed"}}


async def test_a_service_that_is_down_is_an_error_of_the_seed() -> None:
    tenants = Tenants({TENANT: Tenant()})
    tools = {"lookup_entity": "memory"}
    async with opened({"memory": "http://127.0.0.1:1/mcp"}, tenants=tenants, fleet=FLEET, tools=tools) as door:
        error = (await answer(door, "lookup_entity", LOOKUP))["error"]
        assert (error["code"], error["data"]) == (-32003, {"reason": "unreachable"})
        assert error["message"] == "service `memory` refuses connections"
        assert door.reachability.lost == {"memory": "unreachable"}
        assert (await answer(door, "search_knowledge_base", SEARCH))["error"]["data"]["field"] == "name"

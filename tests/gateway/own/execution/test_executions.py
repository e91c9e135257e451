"""`agent.execute` as seed 003 writes it, before a real MCP server of the SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as t
import pytest
from mcp.server import MCPServer
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp

from pallas_contract.fleet.access_model import Tenant
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.own import admission
from pallas_gateway.tenants import Tenants
from tests.gateway.deadlines import Deadlines
from tests.gateway.door import OWN, PHONE, UI, Agent, Door, opened

AGENTS = {"news_fetcher": {"card": "a.md", "port": 8101}, "hidden": {"card": "a.md", "port": 8102}}
FLEET = resolve(Fleet.model_validate({"name": "x", "agents": AGENTS}))
INPUT = {"type": "object", "properties": {"symbol": {"type": "string"}}, "required": ["symbol"]}
OUTPUT = {"type": "object", "properties": {"articles": {"type": "array", "items": {"type": "string"}}}}
ARTICLES = ["Apple releases new product", "Analysts bullish on AAPL"]
REQUEST: dict[str, Any] = {
    "method": "agent.execute",
    "params": {
        "agent_id": "news_fetcher",
        "function": "fetch_recent_articles",
        "input": {"symbol": "AAPL"},
        "meta": {"task_id": "task_001", "timestamp": "2025-05-28T15:00:00Z"},
    },
}
"""As section 3.1 of the seed has it."""
ENVELOPE = {"jsonrpc": "2.0", "id": 7}


class NewsFetcher(Agent):
    """A data agent; `metas` are those of all calls of its functions."""

    def __init__(self) -> None:
        super().__init__("news-fetcher")
        self.metas: list[dict[str, Any]] = []

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        fetch = t.Tool(name="fetch_recent_articles", input_schema=INPUT, output_schema=OUTPUT)
        return t.ListToolsResult(tools=[fetch, t.Tool(name="send_message", input_schema={"type": "object"})])

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        self.metas.append(dict(ctx.meta))
        symbol = (params.arguments or {}).get("symbol")
        if params.name == "send_message":
            return t.CallToolResult(content=[t.TextContent(type="text", text="prose")])
        if symbol == "WAIT":
            await self.hold(ctx)
        if symbol == "FAIL":
            return t.CallToolResult(content=[t.TextContent(type="text", text="no source")], is_error=True)
        if symbol == "CRASH":
            raise MCPError(-32603, "broken")
        body: dict[str, Any] = {"articles": [1] if symbol == "ODD" else ARTICLES}
        return t.CallToolResult(content=[], structured_content=body)


class Values(Agent):
    """An agent whose functions answer what is no object, as a server of the SDK sends it."""

    @asynccontextmanager
    async def app(self) -> AsyncIterator[ASGIApp]:
        server = MCPServer(self.name, log_level="ERROR")

        @server.tool()
        def rows(count: int) -> list[dict[str, int]]:
            return [{"row": index} for index in range(count)]

        @server.tool()
        def total() -> int:
            return 7

        @server.tool()
        def row(name: str) -> dict[str, int] | None:
            return {"row": 1} if name else None

        @server.tool()
        def deep() -> list[Any]:
            return list(json.loads("[" * 150 + "]" * 150))

        @server.tool()
        def prose(text: str) -> str:
            return text

        app = server.streamable_http_app(stateless_http=True)
        async with app.router.lifespan_context(app):
            yield app


@pytest.fixture
async def fetcher() -> NewsFetcher:
    return NewsFetcher()


@asynccontextmanager
async def before(agent: Agent, tokens: dict[str, str] | None = None, **limits: Any) -> AsyncIterator[Door]:
    tenants = {"desk": Tenant(callers=["ui"] if tokens else [], **limits)}
    own = OWN if tokens else ""
    async with (
        asyncio.timeout(60),
        agent.app() as app,
        opened({agent.name: app}, tokens=tokens, own=own, tenants=Tenants(tenants), fleet=FLEET) as door,
    ):
        yield door


def request(*, meta: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    params = {**REQUEST["params"], **changes}
    return {**REQUEST, "params": {**params, "meta": {**params["meta"], **(meta or {})}}}


async def execute(door: Door, message: dict[str, Any], token: str = "", status: int = 200) -> dict[str, Any]:
    reply = await door.web.post("/mcp", json=message, headers={"authorization": f"Bearer {token}"} if token else {})
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/json")
    body: dict[str, Any] = reply.json()
    return body


async def refused(door: Door, message: dict[str, Any], token: str = "", status: int = 200) -> tuple[int, Any]:
    body = await execute(door, message, token, status)
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"code", "message", "data"}
    data = body["error"]["data"]
    return body["error"]["code"], data.get("field", data["reason"])


@pytest.mark.parametrize("head", [{}, ENVELOPE], ids=["seed", "JSON-RPC"])
async def test_the_message_of_the_seed_is_answered_in_its_envelope(fetcher: NewsFetcher, head: dict[str, Any]) -> None:
    async with before(fetcher) as door:
        answer = await execute(door, {**head, **REQUEST})
        assert isinstance(answer["meta"].pop("execution_time_ms"), int)
        assert answer == {**head, "result": {"articles": ARTICLES}, "meta": {"status": "success"}}
        (meta,) = fetcher.metas
        assert (meta["io.pallas-kit/task"], meta["io.pallas-kit/seconds"]) == ("task_001", "60")
        (record,) = door.noted.ended
        call = record.call
        assert (call.agent, call.method, call.name) == ("news-fetcher", "agent.execute", "fetch_recent_articles")
        assert (call.tenant, record.outcome) == ("desk", "answered")


async def test_each_error_has_the_code_of_the_seed(fetcher: NewsFetcher) -> None:
    async with before(fetcher) as door:
        for changes, expected in (
            ({"agent_id": "unknown"}, (-32602, "unknown_agent")),
            ({"agent_id": "hidden"}, (-32602, "unknown_agent")),
            ({"function": "fetch_ohlcv"}, (-32601, "unknown_function")),
            ({"input": {}}, (-32602, "input")),
            ({"input": {"symbol": 1}}, (-32602, "input.symbol")),
            ({"input": "AAPL"}, (-32602, "input")),
            ({"more": 1}, (-32602, "more")),
            ({"input": {"symbol": "FAIL"}}, (-32000, "function_error")),
            ({"input": {"symbol": "CRASH"}}, (-32000, "function_error")),
            ({"input": {"symbol": "ODD"}}, (-32000, "function_error")),
        ):
            assert await refused(door, request(**changes)) == expected, changes
        asked = len(fetcher.metas)
        for meta in ({}, {"task_id": ""}, {"task_id": "a b"}, {"task_id": 1}):
            message = {**REQUEST, "params": {**REQUEST["params"], "meta": meta}}
            assert await refused(door, message) == (-32602, "meta.task_id")
        assert len(fetcher.metas) == asked
        error = (await execute(door, request(agent_id="unknown")))["error"]
        assert error["data"]["agent_id"] == "unknown"
        prose = await execute(door, request(function="send_message", input={"message": "?"}))
        assert prose["result"] == {"answer": "prose"}


async def test_a_value_that_is_no_object_keeps_its_type() -> None:
    async with before(Values("news-fetcher")) as door:
        for function, value, expected in (
            ("rows", {"count": 0}, {"result": []}),
            ("rows", {"count": 1}, {"result": [{"row": 0}]}),
            ("rows", {"count": 2}, {"result": [{"row": 0}, {"row": 1}]}),
            ("total", {}, {"result": 7}),
            ("row", {"name": ""}, {"result": None}),
            ("row", {"name": "one"}, {"row": 1}),
            ("prose", {"text": "done"}, {"answer": "done"}),
            ("prose", {"text": '{"done": true}'}, {"done": True}),
        ):
            answer = await execute(door, request(function=function, input=value))
            assert answer["result"] == expected, function
        deep = await execute(door, request(function="deep", input={}))
        assert isinstance(deep["result"]["answer"], str), "deeper than what is sent as an object"


@pytest.mark.parametrize("head", [{"id": 1}, {"jsonrpc": "2.0"}, {"jsonrpc": "1.0", "id": 1}, {**ENVELOPE, "id": True}])
async def test_half_an_envelope_is_none(fetcher: NewsFetcher, head: dict[str, Any]) -> None:
    async with before(fetcher) as door:
        assert await refused(door, {**REQUEST, **head}, status=400) == (-32600, "malformed")
        headers = {"mcp-method": "tools/call"}
        reply = await door.web.post("/mcp", json={**ENVELOPE, **REQUEST}, headers=headers)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32020)
        assert fetcher.metas == []


@pytest.mark.parametrize("head", [{}, ENVELOPE], ids=["seed", "JSON-RPC"])
async def test_what_is_not_called_json_is_refused_as_everywhere(fetcher: NewsFetcher, head: dict[str, Any]) -> None:
    body = json.dumps({**head, **REQUEST})
    async with before(fetcher) as door:
        for headers in ({}, {"content-type": "text/plain"}, {"content-type": "text/plain; x=application/json"}):
            reply = await door.web.post("/mcp", content=body, headers=headers)
            refusal = reply.json()
            error = refusal.pop("error")
            assert (reply.status_code, refusal) == (400, head)
            assert (error["code"], error["data"]["reason"]) == (-32600, "malformed")
        assert fetcher.metas == []
        reply = await door.web.post("/mcp", content=body, headers={"content-type": "Application/JSON; charset=utf-8"})
        assert "result" in reply.json()


async def test_a_function_has_the_tenants_time_and_rate(fetcher: NewsFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "asyncio", Deadlines(fetcher.waiting, 0.5))
    async with before(fetcher, requests="2/minute", timeout=0.5) as door:
        assert await refused(door, request(input={"symbol": "WAIT"})) == (-32001, "timeout")
        await execute(door, REQUEST)
        reply = await door.web.post("/mcp", json=REQUEST)
        assert (reply.json()["error"]["code"], reply.json()["error"]["data"]["reason"]) == (-32013, "rate")
        assert 0 < int(reply.headers["retry-after"]) <= 60


@pytest.mark.parametrize("alone", [True, False], ids=["function", "graph"])
async def test_without_access_one_of_several_tenants_is_named(fetcher: NewsFetcher, alone: bool) -> None:
    tenants = {"desk": Tenant(), "office": Tenant()}
    async with (
        asyncio.timeout(60),
        fetcher.app() as app,
        opened({fetcher.name: app}, own="", tenants=Tenants(tenants), fleet=FLEET) as door,
    ):
        task = {
            "task_id": "t",
            "agent_id": "news_fetcher",
            "function": "fetch_recent_articles",
            "input": {"symbol": "A"},
        }
        graph = {"method": "agent.execute", "params": {"tasks": [task], "meta": {"task_id": "g"}}}
        message = request() if alone else graph
        assert await refused(door, message) == (-32602, "unknown_tenant")
        assert fetcher.metas == []
        message["params"]["meta"]["tenant_id"] = "office"
        assert "result" in await execute(door, message)


async def test_who_hangs_up_ends_the_function(fetcher: NewsFetcher) -> None:
    async with before(fetcher) as door:
        waiting = asyncio.create_task(door.web.post("/mcp", json=request(input={"symbol": "WAIT"})))
        await fetcher.waiting.wait()
        waiting.cancel()
        await fetcher.cancelled.wait()
        assert [record.outcome for record in await door.noted.until(1)] == ["hung_up"]


async def test_only_who_is_in_a_tenant_executes_and_in_its_own(fetcher: NewsFetcher) -> None:
    async with before(fetcher, {"ui": UI, "phone": PHONE}) as door:
        assert (await door.web.post("/mcp", json=REQUEST)).status_code == 401
        assert await refused(door, REQUEST, PHONE) == (-32602, "unknown_tenant")
        assert await refused(door, request(meta={"tenant_id": "other"}), UI) == (-32602, "unknown_tenant")
        assert fetcher.metas == []
        for message in (REQUEST, request(meta={"tenant_id": "desk"})):
            assert "result" in await execute(door, message, UI)
        assert all(head["authorization"] == f"Bearer {OWN}" for head in fetcher.heads)


async def test_an_agent_that_is_down_is_unreachable() -> None:
    tenants = Tenants({"desk": Tenant()})
    async with opened({"news-fetcher": "http://127.0.0.1:1/mcp"}, tenants=tenants, fleet=FLEET) as door:
        assert await refused(door, REQUEST) == (-32001, "unreachable")
        assert door.reachability.lost == {"news-fetcher": "unreachable"}


async def test_its_name_in_another_message_is_only_text(fetcher: NewsFetcher) -> None:
    async with before(fetcher) as door:
        asked = {"name": "ask_agent", "arguments": {"agent_uri": "agent.execute", "tenant_id": "desk", "prompt": "?"}}
        body = await execute(door, {**ENVELOPE, "method": "tools/call", "params": asked})
        assert body["error"]["data"] == {"reason": "unknown_agent"}

"""`/mcp` of the gateway before real MCP servers: the client of seed 002 as it stands there, and SDK clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import mcp_types as t
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from pallas_contract.fleet.access_model import Tenant
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.own import admission
from pallas_gateway.tenants import Tenants
from tests.gateway.deadlines import Deadlines
from tests.gateway.door import ERAS, OWN, PHONE, UI, Agent, Door, opened

DEADLINE = 60
TENANT = "test-tenant"
AGENTS = {
    "percolate_researcher": {"card": "a.md", "port": 8101, "description": "Looks things up"},
    "hidden": {"card": "a.md", "port": 8102},
}
FLEET = resolve(Fleet.model_validate({"name": "x", "version": "1.2.0", "agents": AGENTS}))
MODEL = "io.pallas-kit/model"
ASKED = {"agent_uri": "percolate-researcher", "tenant_id": TENANT, "prompt": "Summarize recent docs"}


class Researcher(Agent):
    """An agent that answers what it is asked, but for three prompts; `asked` are the arguments of all calls."""

    def __init__(self) -> None:
        super().__init__("percolate-researcher")
        self.asked: list[dict[str, Any]] = []
        self.seconds: list[str] = []
        self.models: list[str] = []
        self.model: str | None = None

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        arguments = dict(params.arguments or {})
        assert params.name == "send_message"
        self.asked.append(arguments)
        self.seconds.append(ctx.meta["io.pallas-kit/seconds"])
        self.models.append(ctx.meta[MODEL])
        prompt = arguments["message"]
        if prompt == "wait":
            await ctx.session.report_progress(1, 2, "waiting")
            await self.hold(ctx)
        text = json.dumps({"answer": "42", "confidence": 0.95}) if prompt == "structured" else f"done: {prompt}"
        content = t.TextContent(type="text", text=text)
        return t.CallToolResult(
            content=[content], is_error=prompt == "fail", _meta={MODEL: self.model} if self.model else None
        )


@pytest.fixture
async def researcher() -> Researcher:
    return Researcher()


@asynccontextmanager
async def before(agent: Agent, tokens: dict[str, str] | None = None, **limits: Any) -> AsyncIterator[Door]:
    written = {TENANT: Tenant(callers=["ui"] if tokens else [], **limits)}
    if tokens:
        written["other"] = Tenant(callers=["phone"])
    own = OWN if tokens else ""
    async with (
        asyncio.timeout(DEADLINE),
        agent.app() as app,
        opened({agent.name: app}, tokens=tokens, own=own, tenants=Tenants(written), fleet=FLEET) as door,
    ):
        yield door


async def ask(door: Door, method: str, params: dict[str, Any], token: str = "") -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    message = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
    reply = await door.web.post("/mcp", json=message, headers=headers)
    assert reply.status_code == 200
    body: dict[str, Any] = reply.json()
    assert (body["jsonrpc"], body["id"]) == ("2.0", 5)
    return body


async def ask_agent(door: Door, token: str = "", **changes: Any) -> dict[str, Any]:
    arguments = {key: value for key, value in {**ASKED, **changes}.items() if value is not None}
    return await ask(door, "tools/call", {"name": "ask_agent", "arguments": arguments}, token)


def error(body: dict[str, Any]) -> tuple[int, str, dict[str, Any]]:
    return body["error"]["code"], body["error"]["message"], body["error"]["data"]


async def test_the_client_of_the_seed_works_as_it_is_written(researcher: Researcher) -> None:
    """Seed 002, Custom client implementation, but for the URL: no `initialize`, no `Accept`."""
    async with before(researcher) as door:
        url = f"{door.web.base_url}/mcp"

        async def call_mcp_tool(tool_name: str, arguments: dict[str, Any]) -> Any:
            async with httpx.AsyncClient(timeout=60) as client:
                request = {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": tool_name, "arguments": arguments},
                }
                response = await client.post(
                    url, json=request, headers={"Content-Type": "application/json"}, timeout=60.0
                )
                result = response.json()
                return result["result"]

        result = await call_mcp_tool("ask_agent", ASKED)
        answer = {
            "status": "success",
            "response": {"answer": "done: Summarize recent docs"},
            "trace_id": "ab" * 16,
            "model": None,
        }
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"] == answer
        (record,) = door.noted.ended
        assert (record.call.agent, record.call.name, record.call.tenant) == (researcher.name, "ask_agent", TENANT)
        assert (record.outcome, record.call.trace) == ("answered", "ab" * 16)


async def test_what_an_agent_answers_in_json_is_the_response(researcher: Researcher) -> None:
    async with before(researcher) as door:
        structured = (await ask_agent(door, prompt="structured"))["result"]["structuredContent"]
        assert structured["response"] == {"answer": "42", "confidence": 0.95}
        failed = (await ask_agent(door, prompt="fail"))["result"]
        assert (failed["isError"], failed["structuredContent"]["status"]) == (True, "error")


async def test_the_model_of_the_answer_is_told_and_one_that_is_wanted_goes_along(researcher: Researcher) -> None:
    async with before(researcher) as door:
        unknown = error(await ask_agent(door, model="claude-opus-4"))
        assert unknown[::2] == (-32003, {"reason": "failed"})
        researcher.model = "claude-opus-4"
        for model in (None, "claude-opus-4"):
            answer = (await ask_agent(door, model=model))["result"]["structuredContent"]
            assert (answer["status"], answer["model"]) == ("success", "claude-opus-4")
        of_user = error(await ask_agent(door, agent_uri="agentlet://user/u/a", model="claude-opus-4"))
        assert of_user[2]["field"] == "model"
    assert researcher.models == ["claude-opus-4", "", "claude-opus-4"]


@pytest.mark.parametrize("era", ERAS)
async def test_mcp_clients_of_both_eras_see_what_there_is(researcher: Researcher, era: str) -> None:
    async with before(researcher) as door, httpx2.AsyncClient(timeout=60) as web:
        transport = streamable_http_client(f"{door.web.base_url}/mcp", http_client=web)
        async with Client(transport, mode=era) as client:
            (tool,) = (await client.list_tools()).tools
            assert tool.name == "ask_agent"
            assert tool.input_schema["required"] == ["agent_uri", "tenant_id", "prompt"]
            result = await client.call_tool("ask_agent", ASKED)
            assert result.structured_content is not None
            assert result.structured_content["response"] == {"answer": "done: Summarize recent docs"}
            with pytest.raises(MCPError) as refused:
                await client.call_tool("ask_agent", {**ASKED, "agent_uri": "nobody"})
            assert (refused.value.code, refused.value.data) == (-32001, {"reason": "unknown_agent"})
            assert [str(entry.uri) for entry in (await client.list_resources()).resources] == [
                "system-agents://list",
                "my-agents://list",
            ]
            names = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert names == ["analyze-document", "create-summary", "extract-entities"]


async def test_agents_are_resources_and_only_those_behind_the_gateway(researcher: Researcher) -> None:
    async def read(uri: str) -> dict[str, Any]:
        return await ask(door, "resources/read", {"uri": uri})

    async with before(researcher) as door:
        (contents,) = (await read("system-agents://list"))["result"]["contents"]
        assert (contents["uri"], contents["mimeType"]) == ("system-agents://list", "application/json")
        (schema,) = json.loads(contents["text"])
        assert (schema["fully_qualified_name"], schema["version"]) == ("percolate-researcher", "1.2.0")
        (one,) = (await read("agentlet://percolate-researcher"))["result"]["contents"]
        assert json.loads(one["text"]) == schema
        assert (await read("my-agents://list"))["result"]["contents"][0]["text"] == "[]"
        assert error(await read("agentlet://hidden")) == (
            -32001,
            "Agent not found: agentlet://hidden",
            {"reason": "unknown_agent"},
        )
        assert error(await read("file:///etc/passwd"))[0] == -32602


async def test_arguments_are_refused_by_name_in_the_shape_of_the_seed(researcher: Researcher) -> None:
    async with before(researcher) as door:
        missing = error(await ask_agent(door, tenant_id=None))
        assert missing == (
            -32602,
            "Invalid params: tenant_id is required",
            {"field": "tenant_id", "reason": "Field required"},
        )
        for changes, field in (({"prompt": 1}, "prompt"), ({"more": 1}, "more"), ({"model": 1}, "model")):
            code, _, data = error(await ask_agent(door, **changes))
            assert (code, data["field"]) == (-32602, field)
        assert error(await ask(door, "tools/call", {"name": "create_agent"}))[0] == -32602
        assert (await ask(door, "no/such", {}))["error"]["code"] == -32601
        prompt = {"name": "analyze-document", "arguments": {"document": "a text"}}
        (message,) = (await ask(door, "prompts/get", prompt))["result"]["messages"]
        assert message["content"]["text"].endswith("document:\na text")
        empty = await ask(door, "prompts/get", {"name": "analyze-document"})
        assert error(empty)[2] == {"field": "document", "reason": "Field required"}
    assert researcher.asked == []


async def test_a_tenant_is_the_tokens_and_nobody_elses(researcher: Researcher) -> None:
    tokens = {"ui": UI, "phone": PHONE, "stray": "stray-0123456789ab"}
    async with before(researcher, tokens) as door:
        assert (await door.web.post("/mcp", json={})).status_code == 401
        for token, tenant in ((PHONE, TENANT), (UI, "other"), (UI, "nobody"), (tokens["stray"], TENANT)):
            refused = error(await ask_agent(door, token, tenant_id=tenant))
            assert refused == (-32000, f"Tenant not found: {tenant}", {"reason": "unknown_tenant"})
        assert researcher.asked == []
        assert error(await ask(door, "resources/read", {"uri": "my-agents://list"}, tokens["stray"]))[0] == -32000
        assert "result" in await ask_agent(door, UI)
        assert [head["authorization"] for head in researcher.heads] == [f"Bearer {OWN}"]


async def test_a_session_is_that_of_one_user_of_one_tenant(researcher: Researcher) -> None:
    async with before(researcher, {"ui": UI, "phone": PHONE}) as door:
        for token, tenant, user in ((UI, TENANT, "a"), (UI, TENANT, "a"), (UI, TENANT, None), (PHONE, "other", "a")):
            await ask_agent(door, token, tenant_id=tenant, user_id=user, session_id="s")
        await ask_agent(door, UI)
        handles = [arguments.get("session_id") for arguments in researcher.asked]
        assert handles[0] == handles[1]
        assert len({*handles}) == 4
        assert handles[-1] is None
        callers = [head["pallas-caller"] for head in researcher.heads]
        assert callers[0] != callers[3]


async def test_limits_hold_at_this_door_too(researcher: Researcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "asyncio", Deadlines(researcher.waiting, 0.5))
    async with before(researcher, requests="2/minute", timeout=0.5) as door:
        late = error(await ask_agent(door, prompt="wait"))
        assert late == (-32003, "Timeout: no answer in 0.5 s", {"reason": "timeout"})
        await researcher.cancelled.wait()
        assert researcher.seconds == ["0.5"]
        assert "result" in await ask_agent(door)
        code, text, data = error(await ask_agent(door))
        assert (code, data["reason"], text.partition(":")[0]) == (-32002, "rate", "Rate limit exceeded")
        assert 0 < data["retry_after"] <= 60
        assert [record.outcome for record in door.noted.ended] == ["timeout", "answered", "rate"]


async def test_who_hangs_up_on_progress_ends_the_work_behind_it(researcher: Researcher) -> None:
    async with before(researcher) as door:
        params = {"name": "ask_agent", "arguments": {**ASKED, "prompt": "wait"}, "_meta": {"progressToken": "p"}}
        message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
        headers = {"accept": "application/json, text/event-stream"}
        async with door.web.stream("POST", "/mcp", json=message, headers=headers) as reply:
            lines = reply.aiter_lines()
            while not (line := await anext(lines)).startswith("data: {"):
                pass
            params = json.loads(line[6:])["params"]
            assert params == {"progressToken": "p", "progress": 1, "total": 2, "message": "waiting"}
        await researcher.cancelled.wait()
        await door.noted.until(1)
        assert [record.outcome for record in door.noted.ended] == ["hung_up"]


async def test_the_gateways_time_holds_where_the_tenant_has_more(
    researcher: Researcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "asyncio", Deadlines(researcher.waiting, 0.5))
    tenants = Tenants({TENANT: Tenant(timeout=50)})
    async with (
        asyncio.timeout(DEADLINE),
        researcher.app() as app,
        opened({researcher.name: app}, timeout=0.5, tenants=tenants, fleet=FLEET) as door,
    ):
        late = error(await ask_agent(door, prompt="wait"))
        assert late == (-32003, "Timeout: no answer in 0.5 s", {"reason": "timeout"})
        await researcher.cancelled.wait()
        assert researcher.seconds == ["0.5"]


async def test_an_agent_that_is_down_is_an_error_of_the_seed() -> None:
    tenants = Tenants({TENANT: Tenant()})
    async with opened({"percolate-researcher": "http://127.0.0.1:1/mcp"}, tenants=tenants, fleet=FLEET) as door:
        code, text, data = error(await ask_agent(door))
        assert (code, data) == (-32003, {"reason": "unreachable"})
        assert text == "agent `percolate-researcher` refuses connections"
        assert door.reachability.lost == {"percolate-researcher": "unreachable"}

"""The MCP surface over an agent that only pretends."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import mcp_types as t
import pytest
from mcp import Client
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.shared import inbound
from mcp.shared.exceptions import MCPError
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from pallas_agent_runtime.calls import arguments as calls_arguments
from pallas_agent_runtime.calls.arguments import Question
from pallas_agent_runtime.config import settings
from pallas_agent_runtime.mcp_server import Surface
from pallas_agent_runtime.metrics import Metrics
from pallas_agent_runtime.web import app as web_app
from pallas_contract import names
from pallas_contract.documents.health import Health
from pallas_contract.fleet import source
from pallas_contract.validate import load
from tests.served import served


class Refusal(Exception):
    pass


class Unthought(Exception):
    """No part of the agent knows it."""


class Pretended:
    """Answers with the question; remembers the key of each call."""

    def __init__(self) -> None:
        self.asked: list[tuple[Question, str | None]] = []

    async def ask(self, question: Question, key: str | None, report: Any, caller: Any, *, elicit: Any) -> str:
        self.asked.append((question, key))
        if question.text == "refuse":
            raise Refusal("the model is down")
        if question.text == "crash":
            raise ValueError("/secret/path")
        return question.text

    async def call(self, name: str, arguments: Any, report: Any, caller: Any, *, elicit: Any) -> t.CallToolResult:
        """Return the arguments of a function as its result."""
        failed = arguments.get("symbol") == "NONE"
        content = [t.TextContent(type="text", text=f"{name} of {arguments.get('symbol')}")]
        return t.CallToolResult(content=content, structured_content=dict(arguments), is_error=failed)

    async def history(self, key: str) -> list[t.PromptMessage]:
        return [t.PromptMessage(role="user", content=t.TextContent(type="text", text=key))]


HEALTH = Health("degraded", datetime(2026, 3, 12, 15, 42, tzinfo=UTC), "Unreachable: argos")


def surface(
    name: str = "tech_research", scope: str = "connection", model: str = "", functions: tuple[str, ...] = ()
) -> tuple[Surface, Pretended, Metrics]:
    data = {"name": "demo", "agents": {name: {"module": "agents.x", "port": 8201, "instance_scope": scope}}}
    tree = source.parse(str(data), name="agents.yaml")
    own = settings.resolve(load.parse(tree), tree, name, Path("/project"), environ={})
    agent = Pretended()
    tools = {name: t.Tool(name=name, input_schema={"type": "object"}) for name in functions}
    provider = "openai" if model else ""
    made = Surface(own, agent, lambda: HEALTH, (Refusal,), model=model, provider=provider, functions=tools)
    return made, agent, Metrics(name, [tool.name for tool in made.tools])


async def call(tool: str, arguments: dict[str, Any], made: tuple[Surface, Pretended, Metrics]) -> t.CallToolResult:
    async with Client(made[0].server(made[2])) as client:
        result = await client.call_tool(tool, arguments)
        assert isinstance(result, t.CallToolResult)
        return result


def text(result: t.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, t.TextContent)
    return block.text


async def test_get_health_is_one_text_block_and_the_same_as_structured_content() -> None:
    result = await call("get_health", {}, surface())
    expected = '{"status": "degraded", "timestamp": "2026-03-12T15:42:00Z", "message": "Unreachable: argos"}'
    assert text(result) == expected
    assert result.structured_content == HEALTH.as_dict()


async def test_get_health_takes_no_arguments() -> None:
    result = await call("get_health", {"deep": True}, surface())
    assert (text(result), result.is_error) == ("deep: unknown argument; get_health takes none", True)


@pytest.mark.parametrize(
    ("message", "said"),
    [("hello", "hello"), ("refuse", "the model is down"), (1, "message: must be text, not a number")],
)
async def test_what_goes_wrong_in_the_agent_is_a_tool_error(message: Any, said: str) -> None:
    result = await call("tech_research", {"message": message}, surface())
    assert (text(result), result.is_error) == (said, message != "hello")


async def test_a_function_is_a_tool_of_its_own_that_no_question_is_made_of() -> None:
    made = surface(functions=("fetch_ohlcv",))
    assert [tool.name for tool in made[0].tools] == ["send_message", "tech_research", "get_health", "fetch_ohlcv"]
    result = await call("fetch_ohlcv", {"symbol": "ACME"}, made)
    assert (text(result), result.structured_content) == ("fetch_ohlcv of ACME", {"symbol": "ACME"})
    assert made[1].asked == []


def test_the_sdk_compares_headers_with_arguments_where_a_schema_wants_that() -> None:
    """Of all other schemas it finds nothing to compare, whatever the headers are, so it is not given them."""
    made, _, metrics = surface(functions=("fetch_ohlcv",))
    region = {"type": "string", "x-mcp-header": "Region"}
    routed = t.Tool(name="routed", input_schema={"type": "object", "properties": {"region": region}})
    made.tools.append(routed)
    lookup = made.server(metrics).get_tool_input_schema
    assert lookup is not None
    assert {tool.name: lookup(tool.name) for tool in made.tools if lookup(tool.name)} == {"routed": routed.input_schema}
    headers = {"mcp-param-region": "eu", "mcp-param-message": "eu"}
    refused = {
        tool.name: inbound.validate_mcp_param_headers(tool.input_schema, {"region": "us", "message": "us"}, headers)
        for tool in made.tools
    }
    assert [name for name, rejection in refused.items() if rejection] == ["routed"]


async def test_a_function_that_fails_is_a_tool_error_and_logged_as_one() -> None:
    with capture_logs() as logs:
        result = await call("fetch_ohlcv", {"symbol": "NONE"}, surface(functions=("fetch_ohlcv",)))
    assert (text(result), result.is_error) == ("fetch_ohlcv of NONE", True)
    assert [(entry["tool"], entry["failed"]) for entry in logs if entry["event"] == "call"] == [("fetch_ohlcv", True)]


async def test_who_asks_for_the_model_is_told_and_who_wants_another_is_refused() -> None:
    made = surface(model="gpt-4.1")
    key = "io.pallas-kit/model"
    async with Client(made[0].server(made[2])) as client:

        async def ask(**meta: Any) -> tuple[str, Any]:
            result = await client.call_tool("send_message", {"message": "hello"}, meta=meta)
            assert isinstance(result, t.CallToolResult)
            return text(result), (result.meta or {}).get(key)

        assert await ask() == ("hello", None)
        assert await ask(**{key: ""}) == ("hello", "gpt-4.1")
        assert await ask(**{key: "openai.gpt-4.1"}) == ("hello", "gpt-4.1")
        for other in ("opus", "azure.gpt-4.1"):
            assert await ask(**{key: other}) == (f"model: this agent runs on openai.gpt-4.1, not on {other}", None)
    assert len(made[1].asked) == 3


async def test_a_crash_tells_the_caller_nothing_of_the_inside() -> None:
    async with Client(surface()[0].server(surface()[2])) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("send_message", {"message": "crash"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("tech_research", ["send_message", "tech_research", "get_health"]),
        ("send_message", ["send_message", "get_health"]),
        ("get_health", ["send_message", "get_health"]),
    ],
)
def test_a_tool_named_after_the_agent_unless_the_name_is_taken(name: str, tools: list[str]) -> None:
    assert [tool.name for tool in surface(name)[0].tools] == tools


async def test_a_named_conversation_has_a_key_and_an_unnamed_one_has_not() -> None:
    made = surface()
    await call("send_message", {"message": "x", "session_id": "s"}, made)
    await call("send_message", {"message": "x"}, made)
    (_, named), (_, unnamed) = made[1].asked
    assert named is not None
    assert unnamed is None


async def test_the_history_prompt_reads_the_same_conversation() -> None:
    made = surface()
    async with Client(made[0].server(made[2])) as client:
        await client.call_tool("tech_research", {"message": "x", "session_id": "s"})
        history = await client.get_prompt("tech_research_history", {"session_id": "s"})
        empty = await client.get_prompt("tech_research_history", {})
        with pytest.raises(MCPError, match="Unknown prompt: other"):
            await client.get_prompt("other", {})
    assert [message.content.text for message in history.messages] == [made[1].asked[0][1]]  # type: ignore[union-attr]
    assert empty.messages == []


MODERN = "2026-07-28"
STATELESS = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def test_a_session_is_the_conversation_of_its_own_calls_and_not_of_what_an_agent_passes_on() -> None:
    made, agent, metrics = surface()
    tree = source.parse(str({"name": "demo", "agents": {"x": {"module": "a.x", "port": 8201}}}), name="agents.yaml")
    manager = web_app.session_manager(
        made.server(metrics), settings.resolve(load.parse(tree), tree, "x", Path("/project"), environ={})
    )
    transport = httpx.ASGITransport(StreamableHTTPASGIApp(manager))
    headers = {"accept": "application/json, text/event-stream"}
    async with manager.run(), httpx.AsyncClient(transport=transport, headers=headers) as http:

        async def send(method: str, params: dict[str, Any], **more: str) -> httpx.Response:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await http.post("http://localhost:8201/mcp", json=message, headers=more)

        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
        opened = await send("initialize", about)
        http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        asked = {"name": "send_message", "arguments": {"message": "x"}}
        era = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "send_message"}
        replies = [
            await send("tools/call", asked),
            await send("tools/call", {**asked, "_meta": {names.META_PATH: "demo/harper"}}),
            await send("tools/call", {**asked, "_meta": STATELESS}, **era),
        ]
    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert [key is not None for _, key in agent.asked] == [True, False, False]


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
@pytest.mark.parametrize("edge", ["ask", "parse", "health"])
async def test_whatever_a_call_makes_us_raise_is_an_error_and_one_line(
    version: str, edge: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, agent, metrics = surface(scope="request")
    manager = web_app.session_manager(made.server(metrics), made._settings)
    broken = {"ask": (agent, "ask"), "parse": (calls_arguments, "parse"), "health": (made, "_current")}
    tool = "get_health" if edge == "health" else "send_message"
    arguments = {} if edge == "health" else {"message": "x"}

    def fail(*_: Any, **__: Any) -> Any:
        raise Unthought("secret")

    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
    era = {"mcp-method": "tools/call", "mcp-name": tool} if version == MODERN else {}
    params = {"name": tool, "arguments": arguments, **({"_meta": STATELESS} if version == MODERN else {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with manager.run(), served(StreamableHTTPASGIApp(manager)) as http:
        with monkeypatch.context() as patch, capture_logs() as lines:
            patch.setattr(*broken[edge], fail)
            reply = await http.post("/mcp", json=message, headers=headers | era)
        again = await http.post("/mcp", json=message, headers=headers | era)
    assert ('"code":-32603' in reply.text, "secret" in reply.text) == (True, False), reply.text
    assert (again.status_code, '"result"' in again.text) == (200, True)
    events = [line["event"] for line in lines if line.get("exc_info")]
    assert (events, [record for record in caplog.records if record.exc_info]) == (["request_failed"], [])


async def test_an_agent_that_remembers_nothing_has_neither_prompt_nor_key() -> None:
    made = surface(scope="request")
    await call("send_message", {"message": "x", "session_id": "s"}, made)
    assert made[1].asked[0][1] is None
    async with Client(made[0].server(made[2])) as client:
        with pytest.raises(MCPError, match="Method not found"):
            await client.list_prompts()


def sample(registry: CollectorRegistry, tool: str, error: str, method: str = "tools/call") -> float | None:
    labels = {"mcp_method_name": method, "gen_ai_tool_name": tool, "error_type": error}
    return registry.get_sample_value("mcp_server_operation_duration_seconds_count", labels)


async def test_metrics_tell_outcomes_apart_and_clamp_names() -> None:
    made = surface()
    metrics = made[2]
    async with Client(made[0].server(metrics)) as client:
        await client.call_tool("tech_research", {"message": "x"})
        await client.call_tool("send_message", {"message": "refuse"})
        with pytest.raises(MCPError):
            await client.call_tool("send_message", {"message": "crash"})
        with pytest.raises(MCPError):
            await client.call_tool("made_up", {})
        with pytest.raises(MCPError):
            await client.get_prompt("made_up", {})
    registry = metrics.registry
    assert sample(registry, "tech_research", "") == 1
    assert sample(registry, "send_message", "tool_error") == 1
    assert sample(registry, "send_message", "_OTHER") == 1
    assert sample(registry, "_OTHER", "-32602") == 1
    assert sample(registry, "", "-32602", "prompts/get") == 1
    assert registry.get_sample_value("pallas_calls_in_flight") == 0
    assert metrics.idle.is_set()
    assert b"made_up" not in metrics.render()

"""Two real agents, one calling the other, driven by the SDK's own client in both eras (seeds 000 and 001)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from pallas_contract import health

pytestmark = pytest.mark.slow

STATELESS = "2026-07-28"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()
DELEGATED = ["Let me look into that...", "It said: what is pallas?"]

HARPER = """
from fast_agent import FastAgent

fast = FastAgent("Harper")  # parses argv by default: the runtime must cope


@fast.agent(name="main", instruction="You are Harper.", servers=["tech_research"])
async def main() -> None: ...
"""
CARD = "type: agent\nname: tech_research\ninstruction: You research.\n"


@pytest.fixture(scope="module")
def model(toolkit: Any) -> Iterator[Any]:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        text = toolkit.said(last)
        if last["role"] == "tool":
            return {"content": f"It said: {text}"}
        if text.startswith("delegate "):
            message = text.removeprefix("delegate ")
            return toolkit.tool_call("tech_research__tech_research", "Let me look into that...", message=message)
        return {"content": text}

    stand_in = toolkit.Model(answer, models=["local-vision"])
    yield from toolkit.serve_model(stand_in)


@pytest.fixture(scope="module")
def fleet(model: Any, toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    ports = [toolkit.free_port() for _ in range(3)]
    folder = toolkit.write_files(
        tmp_path_factory.mktemp("fleet"),
        {
            "agents.yaml": {
                "name": "demo",
                "version": "1.2.3",
                "namespace": "com.example.demo",
                "registry_port": ports[0],
                "agents": {
                    "harper": {
                        "module": "agents.harper",
                        "port": ports[1],
                        "title": "Harper the Great",
                        "description": "Orchestrates",
                        "depends_on": ["tech_research"],
                    },
                    "tech_research": {
                        "card": "agents/tech.yaml",
                        "port": ports[2],
                        "instance_scope": "request",
                    },
                },
            },
            "agents/__init__.py": "",
            "agents/harper.py": HARPER,
            "agents/tech.yaml": CARD,
            "fastagent.config.yaml": {
                "default_model": "openai.local-vision",
                "model_capabilities": {"vision": True, "context_window": 65536},
                "llm_retries": 0,
                "mcp": {"servers": {"tech_research": {"url": "http://127.0.0.1:1/mcp"}}},
            },
            "fastagent.secrets.yaml": "openai:\n  api_key: ${OPENAI_API_KEY}\n  base_url: ${OPENAI_BASE_URL}\n",
            ".env": f"OPENAI_API_KEY=sk-from-dotenv\nOPENAI_BASE_URL={model.url}\n",
        },
    )
    with toolkit.running(folder, "tech_research", "harper", one_by_one=True) as started:
        yield started


def text_of(result: Any) -> str:
    assert [block.type for block in result.content] == ["text"]
    return str(result.content[0].text)


async def call(
    fleet: Any, era: str, tool: str, arguments: dict[str, Any], agent: str = "harper", **options: Any
) -> Any:
    async with Client(fleet.url(agent), mode=era) as client:
        return await client.call_tool(tool, arguments, **options)


# --- what it offers ---


async def test_the_tools_and_the_prompt_are_those_of_the_seed(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert list(tools) == ["send_message", "harper", "get_health"]
    assert prompts == ["harper_history"]
    definition = tools["get_health"].model_dump(by_alias=True, exclude_none=True)
    assert definition == {
        "name": "get_health",
        "description": "Returns the health status of this agent and its downstream dependencies.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    assert tools["harper"].input_schema == tools["send_message"].input_schema
    assert tools["harper"].description == "Orchestrates"


async def test_an_agent_that_remembers_nothing_offers_no_prompt(fleet: Any, era: str) -> None:
    async with Client(fleet.url("tech_research"), mode=era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][1] == "tech_research"
        with pytest.raises(MCPError, match="Method not found"):
            await client.list_prompts()


async def test_the_server_says_its_slug_and_the_fleets_version(fleet: Any) -> None:
    async with Client(fleet.url("tech_research"), mode="legacy") as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("tech-research", "1.2.3")


# --- messages ---


@pytest.mark.parametrize("tool", ["send_message", "harper"])
async def test_a_message_is_answered(fleet: Any, era: str, tool: str) -> None:
    result = await call(fleet, era, tool, {"message": "hello"})
    assert (text_of(result), result.is_error) == ("hello", False)


async def test_an_image_reaches_the_model_and_the_history_unchanged(fleet: Any, era: str, model: Any) -> None:
    model.requests.clear()
    arguments = {"message": "look", "images": [{"data": PNG, "mime_type": "image/png"}], "session_id": f"image-{era}"}
    async with Client(fleet.url("harper"), mode=era) as client:
        await client.call_tool("harper", arguments)
        history = await client.get_prompt("harper_history", {"session_id": f"image-{era}"})
    sent = [part for part in model.requests[-1]["messages"][-1]["content"] if part["type"] == "image_url"]
    assert [part["image_url"]["url"] for part in sent] == [f"data:image/png;base64,{PNG}"]
    assert [message.content.data for message in history.messages if message.content.type == "image"] == [PNG]


async def test_an_image_the_model_cannot_see_is_refused_not_dropped(fleet: Any, era: str) -> None:
    images = [{"data": PNG, "mime_type": "image/gif"}]
    result = await call(fleet, era, "send_message", {"message": "look", "images": images})
    assert (text_of(result), result.is_error) == ("images: the model local-vision does not accept image/gif", True)


async def test_bad_arguments_are_tool_errors_that_name_the_field(fleet: Any, era: str) -> None:
    result = await call(
        fleet, era, "send_message", {"message": "x", "images": [{"data": "?", "mime_type": "image/png"}]}
    )
    assert (text_of(result), result.is_error) == ("images[0].data: is not base64", True)


async def test_an_unknown_tool_is_a_protocol_error(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        with pytest.raises(MCPError, match="Unknown tool: nope") as caught:
            await client.call_tool("nope", {})
    assert caught.value.code == -32602


async def test_a_large_image_passes_and_a_larger_body_does_not(fleet: Any) -> None:
    data = base64.b64encode(bytes(5 << 20)).decode()
    result = await call(
        fleet, STATELESS, "harper", {"message": "big", "images": [{"data": data, "mime_type": "image/png"}]}
    )
    assert text_of(result) == "big"
    data = base64.b64encode(bytes(25 << 20)).decode()
    result = await call(
        fleet, STATELESS, "harper", {"message": "big", "images": [{"data": data, "mime_type": "image/png"}]}
    )
    said = "images[0].data: too large; message and images may have 33554432 bytes together"
    assert (text_of(result), result.is_error) == (said, True)


async def test_what_is_far_too_large_is_refused_unread_and_in_words(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        with pytest.raises(MCPError, match="too large: message and images may have 33554432 bytes together") as refused:
            await client.call_tool("harper", {"message": "x" * (41 << 20)})
        assert refused.value.error.code == -32600
        assert text_of(await client.call_tool("harper", {"message": "hello"})) == "hello"


# --- conversations ---


async def test_a_conversation_goes_on_under_its_handle_and_for_its_caller_only(fleet: Any, era: str) -> None:
    handle = {"session_id": f"talk-{era}"}

    async with fleet.client("harper", era, "alice") as client:
        await client.call_tool("send_message", {"message": "one", **handle})
        await client.call_tool("harper", {"message": "two", **handle})
        history = await client.get_prompt("harper_history", handle)
    spoken = [(message.role, message.content.text) for message in history.messages]
    assert spoken == [("user", "one"), ("assistant", "one"), ("user", "two"), ("assistant", "two")]
    for other in (fleet.client("harper", era, "mallory"), Client(fleet.url("harper"), mode=era)):
        async with other as client:
            assert (await client.get_prompt("harper_history", handle)).messages == []


async def test_without_a_handle_a_session_remembers_and_a_stateless_call_does_not(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        await client.call_tool("harper", {"message": "implicit"})
        history = await client.get_prompt("harper_history", {})
    assert len(history.messages) == (2 if era == "legacy" else 0)


async def test_many_calls_at_once_are_not_mixed_up(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        alone = [client.call_tool("harper", {"message": f"m{number}"}) for number in range(24)]
        together = [client.call_tool("harper", {"message": "t", "session_id": f"par-{era}"}) for _ in range(4)]
        results = await asyncio.gather(*alone, *together)
        history = await client.get_prompt("harper_history", {"session_id": f"par-{era}"})
    assert [text_of(result) for result in results] == [f"m{number}" for number in range(24)] + ["t"] * 4
    assert len(history.messages) == 8


# --- delegation and progress ---


async def test_delegation_is_reported_step_by_step(fleet: Any, era: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    result = await call(fleet, era, "harper", {"message": "delegate what is pallas?"}, progress_callback=on_progress)
    assert text_of(result).split("\n\n") == DELEGATED
    assert [message for *_, message in seen] == [
        "harper step 1 (llm)",
        "harper step 2 (tool)",
        "tech_research/tech_research__tech_research: started",
        "tech_research step 1 (llm)",
        "tech_research/tech_research__tech_research: completed",
        "harper step 3 (llm)",
    ]
    assert [progress for progress, *_ in seen] == [1, 2, 3, 4, 5, 6]
    assert [total for _, total, _ in seen] == [None, None, None, None, 5, None]


@pytest.mark.parametrize("token", [None, "tok-1", 0])
async def test_progress_is_sent_to_those_who_ask_for_it(fleet: Any, token: str | int | None) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    } | ({} if token is None else {"progressToken": token})
    params = {"name": "harper", "arguments": {"message": "delegate x"}, "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": STATELESS,
        "mcp-method": "tools/call",
        "mcp-name": "harper",
    }
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    async with httpx2.AsyncClient(timeout=30) as http:
        reply = await http.post(fleet.url("harper"), headers=headers, json=body)
    assert reply.status_code == 200
    assert reply.text.count("notifications/progress") == (0 if token is None else 6)


# --- plain pages ---


def shown(fleet: Any, status: str) -> dict[str, Any] | None:
    """What harper says of its health once that is `status`."""
    code, body = fleet.get("harper", "/healthz")
    found: dict[str, Any] = json.loads(body)
    return found if (code, found["status"]) == (200, status) else None


def test_pages_for_probes_and_people(fleet: Any, toolkit: Any) -> None:
    assert fleet.get("harper", "/livez") == (200, "ok\n")
    said = toolkit.until(lambda: shown(fleet, "ok"))
    assert said["downstream"]["tech_research"]["state"] == "ok"
    assert said["llm"]["openai"]["ok"] is True
    (entry,) = json.loads(fleet.get("tech_research", "/.well-known/mcp/server.json")[1])["servers"]
    assert entry["server"]["name"] == "com.example.demo/tech-research"
    assert entry["server"]["capabilities"] == {
        "model": "local-vision",
        "vision": True,
        "context_window": 65536,
        "max_output_tokens": 16384,
    }


async def test_metrics_count_calls_with_known_labels_only(fleet: Any, toolkit: Any) -> None:
    toolkit.until(lambda: shown(fleet, "ok"))
    await call(fleet, STATELESS, "harper", {"message": "x"})
    async with Client(fleet.url("harper"), mode=STATELESS) as client:
        with pytest.raises(MCPError):
            await client.call_tool("made-up-name", {})
    lines = fleet.get("harper", "/metrics")[1].splitlines()
    counted = [line for line in lines if line.startswith("mcp_server_operation_duration_seconds_count")]
    assert any('gen_ai_tool_name="harper"' in line and 'error_type=""' in line for line in counted)
    assert any('gen_ai_tool_name="_OTHER"' in line and 'error_type="-32602"' in line for line in counted)
    assert not any("made-up-name" in line for line in lines)
    assert 'pallas_agent_health{agent="harper"} 1.0' in lines
    assert 'pallas_downstream_up{server="tech_research"} 1.0' in lines
    assert 'pallas_llm_preflight_ok{provider="openai"} 1.0' in lines
    assert "pallas_calls_in_flight 0.0" in lines


async def test_a_call_is_one_message_and_lists_no_tools_beside_it(fleet: Any) -> None:
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "harper"}
    known = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in known.items()}
    params = {"name": "harper", "arguments": {"message": "x"}, "_meta": meta}
    accept = {"accept": "application/json, text/event-stream"}

    def listed() -> list[str]:
        lines = fleet.get("harper", "/metrics")[1].splitlines()
        return [line for line in lines if "_count{" in line and 'mcp_method_name="tools/list"' in line]

    before = listed()
    async with httpx2.AsyncClient(timeout=30) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        reply = await http.post(fleet.url("harper"), headers=headers | accept, json=body)
    assert reply.json()["result"]["isError"] is False
    assert listed() == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:1"}, 200),
    ],
)
async def test_foreign_hosts_and_origins_are_refused_on_mcp_only(
    fleet: Any, headers: dict[str, str], status: int
) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient() as http:
        reply = await http.post(fleet.url("harper"), headers=headers | accept, json=body)
        page = await http.get(fleet.url("harper", "/readyz"), headers=headers)
    assert (reply.status_code, page.status_code) == (status, 200)


# --- failures ---


async def test_a_providers_failure_is_an_error_result(fleet: Any, era: str, model: Any) -> None:
    model.broken = True
    try:
        result = await call(fleet, era, "harper", {"message": "x", "session_id": f"broken-{era}"})
    finally:
        model.broken = False
    assert result.is_error
    async with Client(fleet.url("harper"), mode=era) as client:
        assert (await client.get_prompt("harper_history", {"session_id": f"broken-{era}"})).messages == []


async def test_a_client_that_goes_away_stops_the_turn(fleet: Any, model: Any, toolkit: Any) -> None:
    for event in (model.entered, model.released, model.abandoned):
        event.clear()
    waiting = asyncio.create_task(call(fleet, STATELESS, "harper", {"message": "slow"}))
    await asyncio.to_thread(model.entered.wait, 30)
    assert "pallas_calls_in_flight 1.0" in fleet.get("harper", "/metrics")[1]
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    idle = lambda: "pallas_calls_in_flight 0.0" in fleet.get("harper", "/metrics")[1] or None  # noqa: E731
    await asyncio.to_thread(toolkit.until, idle)
    assert await asyncio.to_thread(model.abandoned.wait, 30)
    model.released.set()


async def test_a_dead_sub_agent_degrades_and_comes_back(fleet: Any, era: str, toolkit: Any) -> None:
    fleet.kill("tech_research")
    degraded = await asyncio.to_thread(toolkit.until, lambda: shown(fleet, "degraded"))
    assert degraded["message"] == "Unreachable: tech_research"
    answer = await call(fleet, era, "get_health", {})
    assert health.parse(text_of(answer)) == ("degraded", "Unreachable: tech_research")
    assert answer.structured_content == json.loads(text_of(answer))
    assert text_of(await call(fleet, era, "harper", {"message": "still here"})) == "still here"
    fleet.start("tech_research")
    await asyncio.to_thread(fleet.wait, "tech_research")
    result = await call(fleet, era, "harper", {"message": "delegate what is pallas?"})
    assert text_of(result).split("\n\n") == DELEGATED  # at once, whatever the last probe found
    await asyncio.to_thread(toolkit.until, lambda: shown(fleet, "ok"))


def test_nothing_said_is_logged(fleet: Any) -> None:
    lines = [json.loads(line) for line in fleet.log("harper").read_text().splitlines()]
    assert {line["agent"] for line in lines} == {"harper"}
    assert {line["event"] for line in lines} >= {"configuration", "ready", "call", "downstream", "preflight"}
    assert not any("pallas?" in json.dumps(line) or "sk-from-dotenv" in json.dumps(line) for line in lines)


async def test_sigterm_lets_an_open_call_finish_and_exits_cleanly(
    fleet: Any, era: str, model: Any, toolkit: Any
) -> None:
    model.entered.clear()
    model.released.clear()
    fleet.start("tech_research") if "tech_research" not in fleet.running else None
    await asyncio.to_thread(fleet.wait, "tech_research")
    answers: list[Any] = []

    async def ask() -> None:
        async with Client(fleet.url("tech_research"), mode=era) as client:
            await client.list_tools()  # else the client does so after its call, when nobody is there any more
            answers.append(await client.call_tool("tech_research", {"message": "slow"}))

    waiting = asyncio.create_task(ask())
    assert await asyncio.to_thread(model.entered.wait, 30)
    ending = asyncio.create_task(asyncio.to_thread(fleet.end, "tech_research"))
    draining = lambda: fleet.get("tech_research", "/readyz")[0] == 503 or None  # noqa: E731
    await asyncio.to_thread(toolkit.until, draining)
    late = await call(fleet, era, "tech_research", {"message": "late"}, agent="tech_research")
    assert (text_of(late), late.is_error) == ("the agent is shutting down", True)
    model.released.set()
    with contextlib.suppress(httpx2.ConnectError):  # a client of the handshake era comes back for its event stream
        await waiting
    assert [text_of(answer) for answer in answers] == ["slow"]
    assert await ending == 0


def test_sigterm_ends_the_streams_of_idle_sessions(fleet: Any) -> None:
    codes: list[int] = []

    async def listen() -> None:
        with contextlib.suppress(httpx2.ConnectError):  # it comes back for its stream, and nobody is there any more
            async with Client(fleet.url("harper"), mode="legacy") as client:
                await client.list_tools()  # the client keeps an event stream open
                codes.append(await asyncio.to_thread(fleet.end, "harper"))

    asyncio.run(listen())
    assert codes == [0]
    lines = [json.loads(line) for line in fleet.log("harper").read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert not [line for line in lines if line["level"] in ("error", "critical")]

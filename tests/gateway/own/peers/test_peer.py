"""Answers of agents that are none, or none that can be passed on: in both eras of the caller."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.responses import Response

from pallas_contract.fleet.access_model import Tenant
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.data_plane.message import MOST_VALUES
from pallas_gateway.own.peers.peer import MOST
from pallas_gateway.tenants import Tenants
from tests.gateway.door import ERAS, MODERN, Door, opened

AGENTS = {"scout": {"card": "a.md", "port": 8101}}
FLEET = resolve(Fleet.model_validate({"name": "x", "version": "1.2.0", "agents": AGENTS}))
META = "io.modelcontextprotocol/"


@asynccontextmanager
async def before(body: str) -> AsyncIterator[Door]:
    """Yield the gateway before an agent that answers everything with `body`."""
    agent = Response(body, media_type="application/json")
    async with opened({"scout": agent}, tenants=Tenants({"acme": Tenant()}), fleet=FLEET) as door:
        yield door


def saying(text: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}})


async def ask(door: Door, era: str) -> dict[str, Any]:
    params: dict[str, Any] = {
        "name": "ask_agent",
        "arguments": {"agent_uri": "scout", "tenant_id": "acme", "prompt": "?"},
    }
    headers = {}
    if era == MODERN:
        about = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        params["_meta"] = {META + key: value for key, value in about.items()}
        headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "ask_agent"}
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    reply = await door.web.post("/mcp", json=message, headers={"accept": "application/json, */*"} | headers)
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"confidence": NaN}', '{"confidence": NaN}'),
        ('{"confidence": 1e999}', '{"confidence": 1e999}'),
        ('{"a": "\\ud800"}', '{"a": "\\ud800"}'),
        ("half \ud800 of a pair", "half \ufffd of a pair"),
        ('{"a":' + "[" * 400 + "]" * 400 + "}", '{"a":' + "[" * 400 + "]" * 400 + "}"),
        ("[" * 100_000, "[" * 100_000),
        ('{"a":[0' + ",0" * MOST_VALUES + "]}", '{"a":[0' + ",0" * MOST_VALUES + "]}"),
    ],
    ids=["nan", "infinity", "surrogate", "surrogate in text", "deep", "deeper", "values"],
)
async def test_what_cannot_be_sent_as_an_object_is_text(era: str, text: str, answer: str) -> None:
    async with before(saying(text)) as door:
        result = (await ask(door, era))["result"]
        assert result["structuredContent"]["response"] == {"answer": answer}
        assert [record.outcome for record in door.noted.ended] == ["answered"]


@pytest.mark.parametrize("era", ERAS)
async def test_what_can_be_sent_as_an_object_is_one(era: str) -> None:
    deep = {"a": json.loads("[" * 99 + "]" * 99), "b": "\U0001f600"}
    async with before(saying(json.dumps(deep))) as door:
        assert (await ask(door, era))["result"]["structuredContent"]["response"] == deep


@pytest.mark.parametrize("era", ERAS)
async def test_an_error_of_the_agent_is_an_answer(era: str) -> None:
    reason = {"code": -32600, "message": "request body too large \ud800"}
    async with before(json.dumps({"jsonrpc": "2.0", "id": None, "error": reason})) as door:
        result = (await ask(door, era))["result"]
        assert (result["isError"], result["structuredContent"]["status"]) == (True, "error")
        assert result["structuredContent"]["response"] == {"answer": "request body too large \ufffd"}
        assert [record.outcome for record in door.noted.ended] == ["answered"]
        assert door.reachability.current().status == "ok"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (" " * (MOST + 1), f"answers more than {MOST} bytes"),
        ('{"result":' + "[" * (MOST_VALUES - 1), "gives no answer of MCP"),
        ("[" * (MOST_VALUES + 1), f"answers more than {MOST_VALUES} values"),
        ("<html>", "gives no answer of MCP"),
        ('{"result": {"content": 1}}', "gives no answer of MCP"),
    ],
    ids=["large", "deep", "values", "no json", "no result"],
)
async def test_what_is_no_answer_has_failed(era: str, body: str, words: str) -> None:
    async with before(body) as door:
        error = (await ask(door, era))["error"]
        assert error == {"code": -32003, "message": f"agent `scout` {words}", "data": {"reason": "failed"}}
        assert [record.outcome for record in door.noted.ended] == ["failed"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_fault_of_ours_says_nothing_of_our_insides(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("secret/path.py")

    monkeypatch.setattr("pallas_gateway.own.peers.peer._answer", broken)
    async with before(saying("hello")) as door:
        error = (await ask(door, era))["error"]
        assert (error["message"], error["data"]) == ("the gateway could not answer", {"reason": "failed"})
        assert [record.outcome for record in door.noted.ended] == ["failed"]


def events(*messages: dict[str, Any]) -> Response:
    """An agent that answers with a stream of messages."""
    body = "".join(f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n" for message in messages)
    return Response(body, media_type="text/event-stream")


def progress(value: float, message: str | None) -> dict[str, Any]:
    params = {"progressToken": 1, "progress": value, "message": message}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


class Told:
    """What clients are told of progress."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, value: float, total: float | None, message: str | None) -> None:
        self.steps.append((value, total, message))


@pytest.mark.parametrize("era", ERAS)
async def test_the_progress_of_an_agent_is_that_of_the_call(era: str) -> None:
    quoted = {"content": [], "structuredContent": {"method": "notifications/progress"}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": quoted}
    steps = [progress(1, "one"), progress(float("nan"), "none"), progress(2, "half \ud800"), progress(3, "three")]
    tenants = Tenants({"acme": Tenant()})
    told = Told()
    async with (
        opened({"scout": events(*steps, answer)}, tenants=tenants, fleet=FLEET) as door,
        httpx2.AsyncClient(timeout=60) as web,
        Client(streamable_http_client(f"{door.web.base_url}/mcp", http_client=web), mode=era) as client,
    ):
        question = {"agent_uri": "scout", "tenant_id": "acme", "prompt": "?"}
        result = await client.call_tool("ask_agent", question, progress_callback=told)
        assert told.steps == [(1, None, "one"), (3, None, "three")]
        assert result.structured_content is not None
        assert result.structured_content["response"] == {"method": "notifications/progress"}
        told.steps.clear()
        await client.call_tool("ask_agent", question)
        assert told.steps == []
        with pytest.raises(MCPError) as error:
            await client.call_tool("ask_agent", {**question, "agent_uri": "nobody"}, progress_callback=told)
        assert error.value.code == -32001

"""A health that is asked for again: nobody can tell that the transport was not asked; nothing else goes that way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import mcp_types as t
import pytest
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from pallas_agent_runtime.web import repeated_health
from pallas_agent_runtime.web.repeated_health import RepeatedHealth
from pallas_contract.documents.health import Health

NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "me", "version": "1"},
}
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "get_health",
}


def question(number: Any = 1, name: str = "get_health", **more: Any) -> bytes:
    params = {"name": name, "arguments": {}, "_meta": META, **more}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


class World:
    """A server of one tool and the short way in front of it; `asked` counts what came to the transport."""

    def __init__(self) -> None:
        self.health = Health("ok", NOW)
        self.asked = 0
        self.counted: list[float] = []
        self.server: Server[Any] = Server("hello", version="3", on_call_tool=self._call)
        known = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=["localhost:1"])
        self._manager = StreamableHTTPSessionManager(self.server, stateless=True, security_settings=known)
        self._transport = StreamableHTTPASGIApp(self._manager)
        self.short = RepeatedHealth(self._counting, lambda: self.health, self.counted.append)

    async def _call(self, _ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        content = t.TextContent(type="text", text=self.health.as_json() if params.name == "get_health" else params.name)
        return t.CallToolResult(content=[content], is_error=bool(params.arguments))

    async def _counting(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await self._transport(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
        """Yield a client of the short way, and one of the transport itself."""
        async with (
            self._manager.run(),
            httpx.AsyncClient(transport=httpx.ASGITransport(self.short), base_url="http://localhost:1") as short,
            httpx.AsyncClient(transport=httpx.ASGITransport(self._transport), base_url="http://localhost:1") as long,
        ):
            yield short, long


async def post(client: httpx.AsyncClient, body: bytes, **headers: str) -> tuple[int, list[tuple[str, str]], bytes]:
    named = HEADERS | {key.replace("_", "-"): value for key, value in headers.items()}
    reply = await client.post("/mcp", content=body, headers=named)
    return reply.status_code, sorted(reply.headers.multi_items()), reply.content


async def test_who_asks_again_gets_what_the_transport_would_say() -> None:
    world = World()
    async with world.running() as (short, long):
        for number in (1, 1, 2, 30, 123456):
            assert await post(short, question(number)) == await post(long, question(number))
    assert (world.asked, len(world.counted)) == (1, 4)


async def test_another_health_is_told_at_once() -> None:
    world = World()
    async with world.running() as (short, _):
        await post(short, question())
        for health in (Health("degraded", NOW, "LLM: no"), Health("ok", NOW), Health("ok", NOW + timedelta(seconds=1))):
            world.health = health
            for _ in range(2):
                _, _, body = await post(short, question(2))
                assert json.loads(json.loads(body)["result"]["content"][0]["text"]) == health.as_dict()
    assert world.asked == 4


OTHERS = [
    (question(name="send_message"), {"mcp_name": "send_message"}),
    (question(arguments={"a": 1}), {}),
    (question("1"), {}),
    (question(1.5), {}),
    (question(True), {}),
    (question(-1), {}),
    (question(None), {}),
    (question(10**16), {}),
    (question(_meta={**META, "id": 1}), {}),
    (question(_meta={**META, "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}), {}),
    (question(), {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}),
    (question(_meta={**META, "note": "\\"}), {}),
    (question(_meta={**META, "note": "x" * 5000}), {}),
    (question(), {"note": "x" * 5000}),
    (question(), {"mcp_name": "send_message"}),
    (question(), {"mcp_protocol_version": "2025-11-25"}),
    (question(), {"mcp_protocol_version": "2031-01-01"}),
    (question(), {"host": "evil.example"}),
    (question(), {"accept": "text/plain"}),
    (question().replace(b'"id": 1', b'"id": 01'), {}),
    (question()[:-1], {}),
    (b"[" + question() + b"]", {}),
    (b"[" * 3000 + b'"id": 1,', {}),
]


@pytest.mark.parametrize(("body", "headers"), OTHERS)
async def test_whatever_else_is_asked_goes_to_the_transport_each_time(body: bytes, headers: dict[str, str]) -> None:
    world = World()
    async with world.running() as (short, long):
        await post(short, question())
        for _ in range(2):
            assert await post(short, body, **headers) == await post(long, body, **headers)
    assert (world.asked, world.counted) == (3, [])


async def test_a_number_that_is_none_is_no_other_number() -> None:
    """Its neighbours are those of a question that was answered, and the transport refuses it all the same."""
    world = World()
    async with world.running() as (short, long):
        await post(short, question(10))
        for number in (b"010", b"1e1", b"1.0", b"null", b'"10"', b"{}"):
            body = question(10).replace(b'"id": 10', b'"id": ' + number)
            assert await post(short, body) == await post(long, body)
    assert world.counted == []


async def test_no_more_questions_are_remembered_than_there_is_room_for() -> None:
    world = World()
    async with world.running() as (short, _):
        for number in range(repeated_health.MOST + 1):
            await post(short, question(), user_agent=str(number))
        for number in (repeated_health.MOST, 0):  # the newest, and the oldest
            await post(short, question(), user_agent=str(number))
    assert (world.asked, len(world.counted)) == (repeated_health.MOST + 2, 1)


async def test_what_is_no_post_is_not_read() -> None:
    world = World()
    async with world.running() as (short, _):
        assert (await short.get("/mcp", headers=HEADERS)).status_code == 405
    assert world.asked == 1

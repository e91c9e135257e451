"""Servers that answer a call with more than anybody wants, on the transports that fast-agent makes."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from fast_agent.config import MCPServerSettings
from fast_agent.mcp import client_gateway
from mcp import Client, MCPError
from mcp_types import CallToolResult, TextContent
from starlette.responses import Response
from structlog.testing import capture_logs

from pallas_agent_runtime.engine.answers.limits import MOST_VALUES, Answered, bounded
from tests.agent_runtime.engine.answers.notes import Answer, Notes
from tests.served import served

MIB = 1 << 20
LIMIT = 2 * MIB
SAID = "server 'notes' answered with more than 2 MiB"
EVENT = f"Server-sent event exceeded the {LIMIT} byte limit."


def result(call: dict[str, Any], size: int, values: int = 0) -> bytes:
    """The answer to a call, with a text of so many bytes, and so many values."""
    content = [{"type": "text", "text": "x" * size}]
    answer = {"content": content, "structuredContent": {"a": [1] * values}}
    return json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": answer}).encode()


@asynccontextmanager
async def connected(settings: dict[str, Any], answered: Answered = lambda *_: None) -> AsyncIterator[Client]:
    """Yield a client of the server `notes`, on the transport that fast-agent makes for these settings."""
    servers = {settings["url"]: "notes"} if "url" in settings else {}
    with bounded(servers, LIMIT, answered):
        transport = client_gateway._create_transport(
            server_name="notes",
            config=MCPServerSettings(**settings),
            oauth_mode="disabled",
            oauth_active=False,
            hooks=client_gateway.MCPClientHooks(),
        )
        async with asyncio.timeout(60), Client(transport, mode="legacy") as client:
            yield client


async def size(call: Awaitable[CallToolResult]) -> int:
    (content,) = (await call).content
    assert isinstance(content, TextContent)
    return len(content.text)


def whole(call: dict[str, Any]) -> Response:
    return Response(result(call, LIMIT), media_type="application/json")


def packed(call: dict[str, Any]) -> Response:
    body = gzip.compress(result(call, LIMIT))
    return Response(body, headers={"content-encoding": "gzip"}, media_type="application/json")


def behind_the_end(call: dict[str, Any]) -> Response:
    body = gzip.compress(result(call, 1)) + b" " * LIMIT
    return Response(body, headers={"content-encoding": "gzip"}, media_type="application/json")


def refused(call: dict[str, Any]) -> Response:
    return Response(result(call, LIMIT), 400, media_type="application/json")


def many(call: dict[str, Any]) -> Response:
    return Response(result(call, 1, MOST_VALUES), media_type="application/json")


def many_in_a_stream(call: dict[str, Any]) -> Response:
    return Response(b"data: %b\n\n" % result(call, 1, MOST_VALUES), media_type="text/event-stream")


WAYS: list[Answer] = [whole, packed, behind_the_end, refused]
VALUES: list[Answer] = [many, many_in_a_stream]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_body_that_is_too_large_is_an_error_that_says_so_and_the_session_goes_on(way: Answer) -> None:
    notes = Notes(
        {"much": way, "most": lambda call: Response(result(call, LIMIT - 1000), media_type="application/json")}
    )
    async with served(notes) as http, connected({"url": f"{http.base_url}/mcp"}) as client:
        with pytest.raises(MCPError) as failure, capture_logs() as lines:
            await client.call_tool("much")
        assert failure.value.message == SAID
        assert lines == [{"event": "answer_too_large", "server": "notes", "limit": "2 MiB", "log_level": "warning"}]
        assert await size(client.call_tool("most")) == LIMIT - 1000


@pytest.mark.parametrize("way", VALUES, ids=lambda way: way.__name__)
async def test_so_is_one_that_is_short_and_would_take_much_memory(way: Answer) -> None:
    def most(call: dict[str, Any]) -> Response:
        return Response(result(call, MOST_VALUES, 1000), media_type="application/json")

    async with (
        served(Notes({"much": way, "most": most})) as http,
        connected({"url": f"{http.base_url}/mcp"}) as client,
    ):
        with pytest.raises(MCPError, match=f"server 'notes' answered with more than {MOST_VALUES} values"):
            await client.call_tool("much")
        assert await size(client.call_tool("most")) == MOST_VALUES


async def test_of_a_stream_each_event_may_have_as_much_and_all_together_more() -> None:
    def stream(call: dict[str, Any], last: int) -> Response:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * MIB}}
        messages = [*[json.dumps(note).encode()] * 3, result(call, last)]
        return Response(b"".join(b"data: %b\n\n" % message for message in messages), media_type="text/event-stream")

    notes = Notes({"most": lambda call: stream(call, LIMIT - 1000), "much": lambda call: stream(call, LIMIT)})
    async with served(notes) as http, connected({"url": f"{http.base_url}/mcp"}) as client:
        assert await size(client.call_tool("most")) == LIMIT - 1000
        with pytest.raises(MCPError) as failure:
            await client.call_tool("much")
        assert failure.value.message == f"SSE stream failed: {EVENT}"
        assert await size(client.call_tool("most")) == LIMIT - 1000


async def test_a_redirect_is_followed_however_much_it_says() -> None:
    answers = [
        lambda call: Response(result(call, 5), media_type="application/json"),
        lambda call: Response(b" " * (LIMIT + 1), 307, {"location": "/mcp/"}),
    ]

    def moved(call: dict[str, Any]) -> Response:
        return answers.pop()(call)

    async with served(Notes({"much": moved})) as http, connected({"url": f"{http.base_url}/mcp"}) as client:
        with capture_logs() as lines:
            assert await size(client.call_tool("much")) == 5
    assert [line["event"] for line in lines] == ["answer_too_large"]


async def test_the_old_transport_has_the_same_limit_and_ends_there() -> None:
    def most(call: dict[str, Any]) -> Response:
        return Response(result(call, LIMIT - 1000))

    notes = Notes({"most": most, "much": lambda call: Response(result(call, LIMIT))})

    async def ask(url: str) -> None:
        async with connected({"transport": "sse", "url": url}) as client:
            assert await size(client.call_tool("most")) == LIMIT - 1000
            await client.call_tool("much")

    async with served(notes) as http:
        with pytest.raises(ExceptionGroup) as failure:
            await ask(f"{http.base_url}/sse")
    assert EVENT in repr(failure.value)


async def test_the_old_transport_reads_no_more_of_what_a_message_is_answered() -> None:
    notes = Notes({"few": lambda call: Response(result(call, 5))}, accepted=b" " * (LIMIT + 1))
    async with served(notes) as http, connected({"transport": "sse", "url": f"{http.base_url}/sse"}) as client:
        with capture_logs() as lines:
            assert await size(client.call_tool("few")) == 5
            assert await size(client.call_tool("few")) == 5  # not sent before the first one was accepted
    assert lines[0]["event"] == "answer_too_large"


async def test_how_calls_are_answered_is_told_and_nothing_else() -> None:
    statuses = [200, 403, 307, 401]

    def answer(call: dict[str, Any]) -> Response:
        return Response(result(call, 5), statuses.pop(), {"location": "/mcp/"}, media_type="application/json")

    told: list[tuple[str, int]] = []
    quote = {"text": '"method":"tools/call"'}
    async with (
        served(Notes({"some": answer})) as http,
        connected({"url": f"{http.base_url}/mcp"}, lambda *answer: told.append(answer)) as client,
    ):
        await client.list_tools()
        for _ in range(2):
            with suppress(MCPError):
                await client.call_tool("some")
        await client.call_tool("some")
        with pytest.raises(MCPError):
            await client.get_prompt("p", quote)
    assert told == [("notes", 401), ("notes", 307), ("notes", 403), ("notes", 200)]

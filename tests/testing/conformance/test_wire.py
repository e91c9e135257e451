"""An exchange as it is kept, whatever a server answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from pallas_testing.conformance import wire
from pallas_testing.conformance.wire import Exchange, Wire

MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def post(content: bytes | AsyncIterator[bytes], media_type: str = "text/event-stream") -> Exchange:
    """Return the exchange with a server that answers with this."""
    headers = {"content-type": media_type}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content, headers=headers))
    async with httpx.AsyncClient(transport=transport) as client:
        return await Wire(client, "http://a.example/mcp", token="planted").post(MESSAGE, {})


async def test_messages_of_a_stream_in_their_order() -> None:
    stream = (
        b': hi\r\n\r\nevent: message\r\ndata: {"method": "x"}\r\n\r\ndata: {"id": 1,\r\ndata: "result": {}}\r\n\r\n'
    )
    exchange = await post(stream)
    assert [*exchange.messages] == [{"method": "x"}, {"id": 1, "result": {}}]
    assert exchange.answer == {"id": 1, "result": {}}
    assert exchange.is_stream


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[1]", b"[" * 100_000], ids=["empty", "text", "list", "deep"])
async def test_what_is_no_message_is_none(body: bytes) -> None:
    exchange = await post(body, "application/json; charset=utf-8")
    assert (exchange.messages, exchange.answer, exchange.result) == ((), {}, {})
    assert exchange.media_type == "application/json"


async def test_a_stream_that_stays_open_behind_the_result_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_LINGER", 0.0)

    async def endless() -> AsyncIterator[bytes]:
        yield b'data: {"id": 1, "result": {"tools": []}}\n\n'
        while True:
            await Never()

    assert (await post(endless())).result == {"tools": []}


class Never:
    """What is never done; whoever waits for it can be told to stop."""

    def __await__(self):
        yield from asyncio.get_running_loop().create_future()


async def test_an_answer_without_end_is_none() -> None:
    async def flood() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * (1 << 20) + b"\n"

    exchange = await post(flood())
    assert exchange.received == "no answer: it is larger than 8 MiB"


async def test_what_a_report_shows_is_short_and_has_no_token() -> None:
    exchange = await post(b"x  " * 5000, "text/html")
    assert exchange.sent == "tools/list {}"
    assert exchange.received.startswith("HTTP 200 text/html x x x")
    assert exchange.received.endswith(" ...")
    assert len(exchange.received) < 700
    assert "planted" not in repr(exchange)


async def test_redirects_are_not_followed() -> None:
    away = httpx.Response(302, headers={"location": "http://b.example"})
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: away)) as client:
        exchange = await Wire(client, "http://a.example/mcp").get("/healthz")
    assert (exchange.sent, exchange.status) == ("GET /healthz", 302)

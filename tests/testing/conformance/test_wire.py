"""An exchange as it is kept, whatever a server answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from pallas_testing.conformance import wire
from pallas_testing.conformance.wire import Exchange, Wire

MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def post(
    content: bytes | AsyncIterator[bytes],
    media_type: str = "text/event-stream",
    *,
    silence: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Exchange:
    """Return the exchange with a server that answers with this."""
    headers = {"content-type": media_type}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content, headers=headers))
    async with httpx.AsyncClient(transport=transport, timeout=silence) as client:
        return await Wire(client, "http://a.example/mcp", token="planted", clock=clock).post(MESSAGE, {})


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


async def test_the_clock_stops_at_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(wire, "_LINGER", 0.0)

    async def lingering() -> AsyncIterator[bytes]:
        nonlocal now
        now = 0.25
        yield b'data: {"id": 1, "result": {}}\n\n'
        now = 7.0
        yield b'data: {"id": 1, "result": {}}\n\n'
        await Never()

    assert (await post(lingering(), clock=lambda: now)).seconds == 0.25


@pytest.mark.parametrize(
    ("media_type", "piece"),
    [
        ("text/event-stream", b": ping\n\n"),
        ("text/event-stream", b"event: message\n"),
        ("text/plain", b"data: x\n"),
    ],
)
async def test_who_says_anything_but_messages_is_silent(media_type: str, piece: bytes) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield piece
            await asyncio.sleep(0)

    assert (await post(endless(), media_type, silence=0.01)).received == "no answer: no message for 0.01 s"


async def test_a_result_that_is_repeated_keeps_no_stream_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_LINGER", 0.01)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b'data: {"id": 1, "result": {}}\n\n'
            await asyncio.sleep(0)

    assert (await post(endless())).answer == {"id": 1, "result": {}}


async def test_silence_behind_the_result_is_no_failure() -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b'data: {"id": 1, "result": {}}\n\n'
        raise httpx.ReadTimeout("")

    assert (await post(silent())).answer == {"id": 1, "result": {}}


async def test_a_message_gives_the_next_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[float | None] = []
    monkeypatch.setattr(wire, "_renew", lambda _, seconds: renewed.append(seconds))
    body = b': ping\ndata: {"method": "x"}\n\ndata: {"id": 1, "result": {}}\n\ndata: {"method": "y"}\n\n'
    await post(body, silence=60.0)
    assert renewed == [60.0, wire._LINGER]


@pytest.mark.parametrize("ending", ["\u2028", "\u0085", "\x0b", "\x0c", "\x1e"], ids=ascii)
async def test_only_cr_and_lf_end_a_line(ending: str) -> None:
    message = {"id": 1, "result": {"text": f"one{ending}two" if ending > "\x1f" else "one"}}
    event = f"data: {json.dumps(message, ensure_ascii=False)}\n\nid: a{ending}data: {{}}\n\n"
    assert [*(await post(event.encode())).messages] == [message]


@pytest.mark.parametrize("ending", [b"\r", b"\n", b"\r\n"])
async def test_a_line_may_end_in_three_ways_and_come_in_pieces(ending: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in ending.join([b'data: {"id": 1,', b'data: "result": "\xc3\xa9"}', b"", b'data: {"method": "x"}']):
            yield bytes([byte])

    assert [*(await post(pieces())).messages] == [{"id": 1, "result": "é"}, {"method": "x"}]


async def test_a_body_that_is_no_stream_is_kept_as_it_is() -> None:
    body = 'agent_calls_total 1.0\r\n\x0b\u2028data: {"result": 1}\n\n'
    assert (await post(body.encode(), "text/plain")).body == body


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

"""The words for agents that cannot be asked: real sockets, one kind of failure each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import structlog

from pallas_gateway.data_plane import upstream
from pallas_gateway.data_plane.headers import Pairs


@asynccontextmanager
async def answering(data: bytes) -> AsyncIterator[str]:
    """Yield the URL of a server that sends `data` to whoever has sent a head, and closes the connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


class Agent:
    """A server that says to each request of a connection in turn what `answers` has, and then closes it."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = 0
        self.changed = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for answer in self.answers:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            self.requests.append(head + await reader.readexactly(size_of(head)))
            writer.write(answer)
        else:
            await reader.read()  # what comes then ends with the connection
        writer.close()
        self.ended += 1
        self.changed.set()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self.answer, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp?a=%20b"

    async def until_ended(self, count: int) -> None:
        async with asyncio.timeout(120):
            while self.ended < count:
                self.changed.clear()
                await self.changed.wait()


def size_of(head: bytes) -> int:
    return next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 2\r\n\r\n{}"
HEADERS = [(b"accept", b"application/json"), (b"mcp-method", b"ping"), (b"user-agent", "tést".encode())]


async def post(pool: upstream.Pool, url: str, body: bytes = b"{}", headers: Pairs = HEADERS) -> tuple[int, bytes]:
    reply = await pool.ask("POST", url, headers=headers, body=outgoing(body))
    try:
        return reply.status, await upstream.whole(reply)
    finally:
        reply.close()


def outgoing(body: bytes) -> upstream.Outgoing:
    return upstream.Outgoing(body, lambda: None)


async def failure(way: str, url: str, body: bytes = b"{}") -> str:
    async with upstream.session() as client:
        pool = upstream.Pool(client)
        asking = post(pool, url, body) if way == "pool" else exchanged(client, url, body)
        with pytest.raises(upstream.Unreachable) as caught:
            await asking
    return str(caught.value)


async def exchanged(client: aiohttp.ClientSession, url: str, body: bytes) -> tuple[int, bytes]:
    async with upstream.exchange(client, "POST", url, headers=HEADERS, body=outgoing(body)) as response:
        return response.status, await upstream.whole(response)


@pytest.mark.parametrize("way", ["pool", "session"])
async def test_each_failure_has_its_words_and_no_address(way: str) -> None:
    assert await failure(way, "http://127.0.0.1:1/mcp") == "refuses connections"
    assert await failure(way, "http://no-such-agent.invalid/mcp") == "has a host name that is not known"
    async with answering(b"") as url:
        assert await failure(way, url) == "closed the connection"
        assert await failure(way, url, b"x" * (2 * upstream.BUFFER)) == "closed the connection"
    for wrong in (b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"):
        async with answering(wrong) as url:
            assert await failure(way, url) == "answered no HTTP"


async def test_the_pool_sends_what_a_session_sends() -> None:
    agent = Agent(OK, OK)
    async with agent.served() as url, upstream.session() as client:
        assert await post(upstream.Pool(client), url, b"[1]") == (200, b"{}")
        assert await exchanged(client, url, b"[1]") == (200, b"{}")
    ours, sessions = ([line.lower() for line in request.split(b"\r\n")] for request in agent.requests)
    assert (ours[0], sorted(ours)) == (sessions[0], sorted(sessions))
    assert agent.connections == 1  # they share it


async def test_with_an_aiohttp_of_other_insides_calls_go_by_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*_: object, **__: object) -> None:
        raise TypeError("no such argument")

    agent = Agent(OK, OK)
    async with agent.served() as url, upstream.session() as client:
        monkeypatch.setattr(aiohttp, "ClientRequest", other)  # the session has its own
        pool = upstream.Pool(client)
        with structlog.testing.capture_logs() as logs:
            assert [await post(pool, url), await post(pool, url)] == [(200, b"{}")] * 2
    assert [entry["reason"] for entry in logs] == ["no such argument"]


async def test_a_connection_is_used_again_unless_its_answer_was_not_read() -> None:
    half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"
    agent = Agent(OK, b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" + OK, half)
    async with agent.served() as url, upstream.session() as client:
        pool = upstream.Pool(client)
        answers = [await post(pool, url) for _ in range(3)]
        assert answers == [(200, b"{}"), (204, b""), (200, b"{}")]
        reply = await pool.ask("POST", url, headers=[], body=outgoing(b"{}"))
        reply.close()
        await agent.until_ended(1)
        assert agent.connections == 1
        assert await post(pool, url) == (200, b"{}")
        assert agent.connections == 2


async def test_an_answer_that_nobody_has_asked_for_is_nobodys() -> None:
    """Not that of the next call, however many connections are spoiled so at once."""
    answered = asyncio.Event()
    both = asyncio.Barrier(2)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if not answered.is_set():
            await both.wait()
        writer.write(OK)
        await answered.wait()
        writer.write(OK.replace(b"{}", b"[]"))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, upstream.session() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        pool = upstream.Pool(client)
        assert await asyncio.gather(post(pool, url), post(pool, url)) == [(200, b"{}")] * 2
        assert isinstance(client.connector, aiohttp.TCPConnector)
        kept = [protocol for protocol, _ in next(iter(client.connector._conns.values()))]
        assert len(kept) == 2
        answered.set()
        async with asyncio.timeout(120):
            while not all(protocol.should_close for protocol in kept):
                await asyncio.sleep(0.01)
        assert await post(pool, url) == (200, b"{}")


async def test_who_gives_up_waiting_ends_the_connection() -> None:
    agent = Agent(b"")
    async with agent.served() as url, upstream.session() as client:
        asking = asyncio.create_task(post(upstream.Pool(client), url))
        async with asyncio.timeout(120):
            while not agent.requests:
                await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await agent.until_ended(1)
    assert asking.cancelled()


@pytest.mark.parametrize("value", [b"a\r\nmcp-name: b", b"a\nb", b"\0", b"\x7f"])
async def test_no_header_begins_another(value: bytes) -> None:
    agent = Agent(OK)
    async with agent.served() as url, upstream.session() as client:
        with pytest.raises(upstream.Unreachable):
            await post(upstream.Pool(client), url, headers=[(b"mcp-method", value)])
    assert agent.requests == []


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 099 Nothing\r\ncontent-length: 0\r\n\r\n",
    ],
    ids=["another protocol", "no status"],
)
async def test_an_agent_that_speaks_something_else_is_not_understood(head: bytes) -> None:
    agent = Agent(head)
    async with agent.served() as url, upstream.session() as client:
        with pytest.raises(upstream.Unreachable, match="answered no HTTP"):
            await post(upstream.Pool(client), url)
        await agent.until_ended(1)


async def test_an_answer_that_breaks_off_is_no_answer() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}") as url, upstream.session() as client:
        with pytest.raises(upstream.Interrupted, match="closed the connection"):
            await post(upstream.Pool(client), url)


@pytest.mark.parametrize("way", ["pool", "session"])
async def test_a_post_is_sent_once(way: str) -> None:
    """aiohttp sends again what is idempotent, over a connection of its pool that has died; a call is not."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, upstream.session() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        pool = upstream.Pool(client)

        async def sent() -> bytes:
            return (await (post(pool, url, b"") if way == "pool" else exchanged(client, url, b"")))[1]

        assert await sent() == b""
        with pytest.raises(upstream.Unreachable):
            await sent()
    assert len(requests) == 2

"""The words for agents that cannot be asked: real sockets, one kind of failure each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pallas_gateway.data_plane import upstream


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


def outgoing(body: bytes) -> upstream.Outgoing:
    return upstream.Outgoing(body, lambda: None)


async def failure(url: str, body: bytes = b"{}") -> str:
    async with upstream.session() as client:
        with pytest.raises(upstream.Unreachable) as caught:
            async with upstream.exchange(client, "POST", url, headers=[], body=outgoing(body)):
                pass
    return str(caught.value)


async def test_each_failure_has_its_words_and_no_address() -> None:
    assert await failure("http://127.0.0.1:1/mcp") == "refuses connections"
    assert await failure("http://no-such-agent.invalid/mcp") == "has a host name that is not known"
    async with answering(b"") as url:
        assert await failure(url) == "closed the connection"
        assert await failure(url, b"x" * (2 * upstream.BUFFER)) == "closed the connection"
    async with answering(b"SSH-2.0-OpenSSH\r\n") as url:
        assert await failure(url) == "answered no HTTP"


async def test_a_post_is_sent_once() -> None:
    """aiohttp sends again what is idempotent, over a connection of its pool that has died; a call is not."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, upstream.session() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        async with upstream.exchange(client, "POST", url, headers=[], body=outgoing(b"")) as response:
            assert await upstream.whole(response) == b""
        with pytest.raises(upstream.Unreachable):
            async with upstream.exchange(client, "POST", url, headers=[], body=outgoing(b"")):
                pass
    assert len(requests) == 2

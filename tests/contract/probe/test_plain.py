"""A GET that wants 200 and a connection that is taken: what a service that is no MCP server is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pallas_contract.probe import probe
from tests.ports import free_port

pytestmark = pytest.mark.usefixtures("patient")


@asynccontextmanager
async def answering(text: bytes) -> AsyncIterator[str]:
    """`host:port` of a server that answers `text` to whatever it is asked, and then closes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        ("200 OK", "ok", "Ok"),
        ("204 No Content", "error", "HttpError"),
        ("404 Not Found", "error", "HttpError"),
        ("500 Oh", "error", "HttpError"),
        ("503 Down", "error", "HttpError"),
        ("401 Who", "unauthenticated", "Unauthorized"),
        ("302 There", "error", "Redirect"),
    ],
)
async def test_a_get_wants_200(status: str, state: str, code: str) -> None:
    async with answering(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode()) as at:
        result = await probe.probe(probe.Target(f"http://{at}/readyz", plain="get"))
    assert (result.state, result.reason.code) == (state, code)
    assert result.latency > 0


async def test_a_connection_that_is_taken_is_enough() -> None:
    async with answering(b"") as at:
        port = at.rpartition(":")[2]
        by_name = probe.Target(f"tcp://vectors:{port}", "127.0.0.1", plain="tcp")
        assert (await probe.probe(by_name)).state == "ok"


@pytest.mark.parametrize(("plain", "scheme"), [("get", "http"), ("tcp", "tcp")])
async def test_nobody_there(plain, scheme: str) -> None:
    result = await probe.probe(probe.Target(f"{scheme}://127.0.0.1:{free_port()}", plain=plain))
    assert (result.state, result.reason.message) == ("error", "connection refused")

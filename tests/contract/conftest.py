"""Servers on loopback that answer as badly as a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


Handler = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """A running server: where it is, and what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has closed its connection while the handler was still busy or waiting."""


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[Server]]]:
    """`await serve(handler)`: a server that hands each connection's first request to `handler`, then closes."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(handler: Handler) -> Server:
            running = Server()

            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    asked = await _request(reader)
                    running.asked.append(asked)
                    await handler(asked, writer)
                    await writer.drain()
                except (ConnectionError, asyncio.IncompleteReadError):
                    running.closed.set()
                finally:
                    writer.close()

            server = await asyncio.start_server(connected, "127.0.0.1", 0)
            stack.push_async_callback(server.wait_closed)
            stack.callback(server.close_clients)
            stack.callback(server.close)
            running.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
            return running

        yield start


def http(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A complete HTTP/1.1 answer; keyword `content_type` becomes the header `content-type`."""
    fields = {"content-length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode("latin-1") + body


@pytest.fixture
def answer() -> Callable[..., Handler]:
    """`answer(status, body, **headers)`: a handler that gives this answer to everything."""

    def make(status: int, body: bytes = b"", **headers: str) -> Handler:
        async def handler(_asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(http(status, body, **headers))

        return handler

    return make


Reply = dict[str, Any] | int
"""A JSON-RPC `result` (or the whole message, when it has `jsonrpc`), or an HTTP status."""


@pytest.fixture
def mcp() -> Callable[..., Handler]:
    """`mcp({method: reply}, session="")`: a handler that answers JSON-RPC methods; 404 for the others."""

    def make(replies: dict[str, Reply], *, session: str = "", stream: bool = False) -> Handler:
        async def handler(asked: Asked, writer: asyncio.StreamWriter) -> None:
            if asked.method != "POST":
                writer.write(http(200))
                return
            message = asked.json
            reply = replies.get(message["method"], 202 if message["method"].startswith("notifications/") else 404)
            if isinstance(reply, int):
                writer.write(http(reply))
                return
            whole = reply if "jsonrpc" in reply else {"jsonrpc": "2.0", "id": message["id"], "result": reply}
            body, kind = json.dumps(whole).encode(), "application/json"
            if stream:
                body, kind = b"event: message\r\ndata: " + body + b"\r\n\r\n", "text/event-stream"
            writer.write(http(200, body, content_type=kind, **({"mcp_session_id": session} if session else {})))

        return handler

    return make

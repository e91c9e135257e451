"""An agent that can be told to go wrong: `Agent` serves, and each function below is one way of doing it badly.

Every function gets what was asked and the open connection, and writes whatever it wants. Run as a program
(`python misbehaving.py NAME PORT`) it is an agent in a process of its own, to be frozen or killed, or to be late by as
much as it is told, whatever the others do: by lines of its standard input, in seconds.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
FOR_EVER = 3600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: to which agent, when (monotonic seconds), its headers and the JSON-RPC message."""

    agent: Agent
    at: float
    line: str
    message: dict[str, Any]


Behaviour = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


async def well(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """As an agent of the current era that has nothing to complain of."""
    writer.write(_json(_answer(asked)))


async def of_old(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """As an agent of the era before, which knows no `server/discover`."""
    if asked.message.get("method") == "server/discover":
        writer.write(http(400))
        return
    about = {"name": asked.agent.name, "version": asked.agent.version}
    opened = {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": about}
    writer.write(_json(opened if asked.message.get("method") == "initialize" else _answer(asked), asked))


def late(seconds: float) -> Behaviour:
    """Well, but the first answer of each probe takes that long."""

    async def wait(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.message["method"] == "server/discover":
            await asyncio.sleep(seconds)
        await well(asked, writer)

    return wait


def once(first: Behaviour, then: Behaviour) -> Behaviour:
    """`first` for one request, `then` for all that follow."""
    ways = iter([first])

    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await next(ways, then)(asked, writer)

    return behave


async def blackhole(_asked: Asked, _writer: asyncio.StreamWriter) -> None:
    """Takes the request, says nothing, never closes."""
    await asyncio.sleep(FOR_EVER)


async def half_open(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Half of an answer, then the other side is gone without a word: no more bytes, no FIN, no RST."""
    await _half(asked, writer)
    await asyncio.sleep(FOR_EVER)


async def reset(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A reset in the middle of the body."""
    await _half(asked, writer)
    await asyncio.sleep(0.05)  # or the reset could overtake the half that was sent
    _abort(writer)


async def cut(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """The connection is closed in the middle of the body, politely."""
    await _half(asked, writer)


async def sliced(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A good answer, one byte per packet."""
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in _json(_answer(asked)):
        writer.write(bytes([byte]))
        await asyncio.sleep(0)


async def drip(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A byte each second, for ever: no single read is ever late."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(1)


async def endless_events(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Server-sent events as fast as they are taken, and never the one that was asked for."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
    event = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n' * 100
    while True:
        writer.write(event)
        await writer.drain()


async def huge(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """100 MB."""
    block = b" " * 65536
    writer.write(
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {1600 * 65536}\r\n\r\n".encode()
    )
    for _ in range(1600):
        writer.write(block)
        await writer.drain()


async def trailers(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A short answer in one chunk, then fields after it, each with a name of its own, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    writer.write(b"2\r\n{}\r\n0\r\n")
    for block in itertools.count():
        writer.write(b"".join(b"x-%d-%d: %s\r\n" % (block, number, b"x" * 1000) for number in range(64)))
        await writer.drain()


@cache
def _bomb() -> bytes:
    """0.3 s of processor time: not for each process that imports this module."""
    return gzip.compress(b" " * (64 << 20), compresslevel=6)


async def gzip_bomb(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """64 MiB in 64 KiB, for a client that did not ask for compression."""
    body = await asyncio.to_thread(_bomb)
    writer.write(http(200, body, content_type="application/json", content_encoding="gzip"))


async def invalid_json(asked: Asked, writer: asyncio.StreamWriter) -> None:
    body = json.dumps(_answer(asked))[:-2].encode()
    writer.write(http(200, body, content_type="application/json"))


async def wrong_id(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """The answer to another question."""
    body = json.dumps({**_answer(asked), "id": 4711}).encode()
    writer.write(http(200, body, content_type="application/json"))


async def wrong_version(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Agrees to a protocol version that nobody proposed."""
    if asked.message["method"] != "initialize":
        writer.write(http(400))
        return
    about = {"name": asked.agent.name, "version": "1"}
    writer.write(_json({"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": about}, asked))


async def html(_asked: Asked, writer: asyncio.StreamWriter) -> None:
    """What a proxy in front, or another program on the port, has to say."""
    writer.write(http(200, b"<!doctype html><title>Welcome</title>", content_type="text/html"))


def redirect(status: int, location: str) -> Behaviour:
    async def send_on(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(http(status, location=location))

    return send_on


def status(code: int, **headers: str) -> Behaviour:
    """Only a status, with these headers (`retry_after` is `Retry-After`)."""

    async def refuse(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(http(code, **headers))

    return refuse


def flapping() -> Behaviour:
    """Resets each connection for a second, counted from the first of them, then is well for a second, and so on."""
    began: list[float] = []

    async def flap(asked: Asked, writer: asyncio.StreamWriter) -> None:
        began.append(asked.at)
        if int(asked.at - began[0]) % 2:
            await well(asked, writer)
        else:
            _abort(writer)

    return flap


async def somebody_else(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A healthy agent, but not the one that is expected here."""
    other = Agent("somebody-else")
    writer.write(_json(_answer(Asked(other, asked.at, asked.line, asked.message))))


# ---- what they are made of --------------------------------------------------------------------------------------


def http(code: int, body: bytes = b"", **headers: str) -> bytes:
    fields = {"content-length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {code} Whatever\r\n{head}\r\n".encode("latin-1") + body


def _answer(asked: Asked) -> dict[str, Any]:
    about = {"name": asked.agent.name, "version": asked.agent.version}
    discovered = {"supportedVersions": [MODERN], "_meta": {"io.modelcontextprotocol/serverInfo": about}}
    results = {
        "server/discover": discovered,
        "tools/list": {"tools": [{"name": name} for name in ("get_health", *asked.agent.tools)]},
        "tools/call": {"content": [{"type": "text", "text": json.dumps({"status": "ok"})}]},
    }
    return {"jsonrpc": "2.0", "id": asked.message.get("id"), "result": results.get(asked.message.get("method", ""), {})}


def _json(message: dict[str, Any], asked: Asked | None = None) -> bytes:
    """A JSON-RPC message as an HTTP answer; with `asked`, `message` is only its result."""
    if asked is not None and "jsonrpc" not in message:
        message = {"jsonrpc": "2.0", "id": asked.message.get("id"), "result": message}
    return http(200, json.dumps(message).encode(), content_type="application/json")


async def _half(asked: Asked, writer: asyncio.StreamWriter) -> None:
    whole = _json(_answer(asked))
    writer.write(whole[: len(whole) - 40])
    await writer.drain()


def _abort(writer: asyncio.StreamWriter) -> None:
    """Closing with a linger of zero seconds sends a reset."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


@dataclass
class Agent:
    """One MCP agent on loopback. `how` may change at any time, and holds from the next request on."""

    name: str
    how: Behaviour = well
    version: str = "1.0.0"
    tools: tuple[str, ...] = ("send_message",)
    host: str = "127.0.0.1"
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    _server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def start(self) -> None:
        """Listen, on the port of the time before if there was one."""
        self._server = await asyncio.start_server(self._connected, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            server, self._server = self._server, None
            server.close()
            server.close_clients()
            await server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = int(head.lower().partition("content-length:")[2].partition("\r\n")[0] or 0)
            body = await reader.readexactly(length)
            asked = Asked(self, time.monotonic(), head.partition("\r\n")[0], json.loads(body) if body else {})
            self.asked.append(asked)
            await self.how(asked, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _main(name: str, port: int) -> None:
    agent = Agent(name, port=port)
    await agent.start()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        agent.how = late(float(line))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))

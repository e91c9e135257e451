"""The short way to 304, spoken to over a socket: what it answers, and what it leaves to uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvicorn

from pallas_registry import conditional
from pallas_registry.prebuilt import Document, Prebuilt

PATH = "/catalogue"
DOCUMENT = Document(b'{"servers":[]}')
MISSING = Document(b"{}", status=404)
Say = Callable[..., Awaitable[list[bytes]]]


class World:
    """An application that counts what comes the long way, and answers `/slow` when told."""

    def __init__(self) -> None:
        self.documents = {PATH: DOCUMENT, "/missing": MISSING}
        self.long_ways = 0
        self.go = asyncio.Event()
        self._prebuilt = Prebuilt(self._slow, self.find)

    def find(self, _method: str, path: str, query: bytes) -> Document | None:
        return self.documents.get(path) if query in (b"", b"page=1") else None

    async def __call__(self, scope, receive, send) -> None:
        self.long_ways += 1
        await self._prebuilt(scope, receive, send)

    async def _slow(self, _scope, _receive, send) -> None:
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"slow"})


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def server(world: World) -> AsyncIterator[int]:
    """The port it listens on."""
    config = uvicorn.Config(world, http=conditional.protocol(world.find), lifespan="off", log_config=None, ws="none")
    config.load()
    state = uvicorn.server.ServerState()
    state.default_headers = [(b"date", b"today")]

    def made() -> asyncio.Protocol:
        return config.http_protocol_class(config=config, server_state=state, app_state={})

    listening = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1]
    listening.close()
    listening.close_clients()
    await listening.wait_closed()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Say]:
    """`await say(bytes, answers=1)`: the heads (with the bodies of `/slow`) that come back, in their order."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def say(request: bytes, *, answers: int = 1) -> list[bytes]:
        writer.write(request)
        found = []
        async with asyncio.timeout(10):
            for _ in range(answers):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int((head.lower().partition(b"content-length: ")[2] or b"0").split(b"\r\n")[0])
                found.append(head + await reader.readexactly(length))
        return found

    try:
        yield say
    finally:
        writer.close()


def asked(path: str = PATH, tag: str = DOCUMENT.etag, *, method: str = "GET", more: str = "", body: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nIf-None-Match: {tag}\r\n{more}\r\n{body}".encode()


async def test_what_a_reader_already_has_is_answered_without_the_application(world: World, server: int) -> None:
    async with connected(server) as say:
        for _ in range(2):
            (answer,) = await say(asked())
            assert answer.startswith(b"HTTP/1.1 304 Not Modified\r\ndate: today\r\n")
            assert f"\r\netag: {DOCUMENT.etag}\r\n".encode() in answer
            assert b"content-length" not in answer
        (answer,) = await say(asked(f"{PATH}?page=1", f'"other", W/{DOCUMENT.etag}'))
        assert answer.startswith(b"HTTP/1.1 304")
    assert world.long_ways == 0


async def test_both_ways_say_the_same(world: World, server: int) -> None:
    async with connected(server) as say:
        (short,) = await say(asked())
        # a second field of the same name is left to the long way, which reads them all
        (long,) = await say(asked(tag='"other"', more=f"If-None-Match: {DOCUMENT.etag}\r\n"))
    assert world.long_ways == 1
    assert sorted(short.split(b"\r\n")) == sorted(long.split(b"\r\n"))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asked(tag='"old"'), b"200 OK"),
        (asked("/missing", MISSING.etag), b"404 Not Found"),
        (asked(method="DELETE"), b"405 Method Not Allowed"),
        (asked(more="Connection: close\r\n"), b"304 Not Modified"),
        (asked().replace(b"HTTP/1.1", b"HTTP/1.0"), b"304 Not Modified"),
    ],
)
async def test_the_rest_takes_the_long_way(world: World, server: int, request_: bytes, expected: bytes) -> None:
    async with connected(server) as say:
        (answer,) = await say(request_)
    assert answer.startswith(b"HTTP/1.1 " + expected)
    assert world.long_ways == 1


async def test_a_body_that_nobody_asked_for_is_read_over(world: World, server: int) -> None:
    async with connected(server) as say:
        first = await say(asked(more="Content-Length: 3\r\n", body="abc"))
        second = await say(asked())
    assert first == second
    assert world.long_ways == 0


async def test_pipelined_answers_keep_their_order(world: World, server: int) -> None:
    async with connected(server) as say:
        world.go.set()
        slow = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
        answers = await say(asked() + slow + asked() + asked(tag='"old"'), answers=4)
    assert [answer.split(b"\r\n")[0][9:12] for answer in answers] == [b"304", b"200", b"304", b"200"]
    assert answers[1].endswith(b"slow")
    assert world.long_ways == 3


async def test_a_head_without_end_is_refused(world: World, server: int) -> None:
    async with connected(server) as say:
        (answer,) = await say(asked(more=f"X: {'a' * (64 << 10)}\r\n"))
    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_change_is_seen_at_once(world: World, server: int) -> None:
    async with connected(server) as say:
        await say(asked())
        world.documents[PATH] = Document(b'{"servers":[1]}')
        (answer,) = await say(asked())
    assert answer.endswith(b'{"servers":[1]}')

"""The short way to ready-made documents: what it answers, what it leaves to uvicorn, and that nobody can tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from hypothesis import example, given
from hypothesis import strategies as st

from pallas_registry.prebuilt import fast_path
from pallas_registry.prebuilt.documents import Document, Prebuilt
from pallas_service.http.protocol import BoundedProtocol
from tests.examples import hostile
from tests.registry.processes import DEADLINE

PATH = "/catalogue"
DOCUMENT = Document(b'{"servers":[]}')
MISSING = Document(b"{}", status=404)
Say = Callable[..., Awaitable[list[bytes]]]


class World:
    """An application that counts what comes the long way, answers `/slow` when told, and `/echo/...` with itself."""

    def __init__(self) -> None:
        self.documents = {PATH: DOCUMENT, "/missing": MISSING}
        self.long_ways = self.looks = 0
        self.go = asyncio.Event()
        self._prebuilt = Prebuilt(self._slow, self.find)

    def find(self, _method: str, path: str, query: bytes) -> Document | None:
        self.looks += 1
        if path.startswith("/echo/"):
            return Document(f"{path} {query!r}".encode())
        return self.documents.get(path)

    def kept(self, path: str) -> Document | None:
        return self.documents.get(path)

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
    config = uvicorn.Config(world, http=fast_path.protocol(world.kept), lifespan="off", log_config=None, ws="none")
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
        for _ in range(answers):
            async with asyncio.timeout(DEADLINE):
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


PLAIN = f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_a_document_is_answered_without_the_application(world: World, server: int) -> None:
    async with connected(server) as say:
        for _ in range(2):
            (answer,) = await say(PLAIN)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\ndate: today\r\n")
            assert answer.endswith(b'\r\n\r\n{"servers":[]}')
    assert world.long_ways == 0


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asked(tag='"old"'), b"200 OK"),
        (asked("/missing", MISSING.etag), b"404 Not Found"),
        (asked("/%63atalogue"), b"304 Not Modified"),
        (asked("/catalogue#all"), b"304 Not Modified"),
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
    assert world.long_ways == 3, "of requests at once only the first goes the short way"


async def test_what_is_made_when_asked_for_is_made_once(world: World, server: int) -> None:
    made = Document(b"/echo/a b'b=c'")
    async with connected(server) as say:
        for looks in (1, 2, 3):
            (answer,) = await say(asked("/echo/a?b=c", made.etag))
            assert answer.startswith(b"HTTP/1.1 304")
            assert world.looks == looks


@pytest.mark.parametrize("way", ["short", "long"])
@pytest.mark.parametrize("asks", [PLAIN, asked(), PLAIN.replace(PATH.encode(), b"/echo/a?search=b")])
async def test_who_asks_without_waiting_delays_nobody(world: World, asks: bytes, way: str) -> None:
    kind = fast_path.protocol(world.kept) if way == "short" else BoundedProtocol
    flood, other = Line(kind, world), Line(kind, world)
    flood.protocol.data_received(asks * 5000)
    other.protocol.data_received(asked("/echo/me", '"old"'))
    while not other.written:
        await asyncio.sleep(0)
    assert len(flood.answers) < 10
    assert len(flood.protocol.pipeline) < 200, "nor are they all parsed at once"


async def test_all_that_is_asked_without_waiting_is_answered_in_turn(world: World, server: int) -> None:
    numbers = range(9000)
    async with connected(server) as say:
        asks = b"".join(b"GET /echo/%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in numbers)
        answers = await say(asks + PLAIN, answers=len(numbers) + 1)
        assert [answer.rpartition(b"\r\n\r\n")[2] for answer in answers] == [
            *(f"/echo/{number} b''".encode() for number in numbers),
            DOCUMENT.body,
        ]
        long_ways = world.long_ways
        await say(PLAIN)
    assert world.long_ways == long_ways, "the short way is open again"


async def test_no_more_is_read_than_waits(world: World) -> None:
    line = Line(fast_path.protocol(world.kept), world)
    line.protocol.data_received(PLAIN * 1000)
    while len(line.answers) < 900:
        assert not line.reading
        await asyncio.sleep(0)
    while len(line.answers) < 1000:
        await asyncio.sleep(0)
    assert line.reading


async def test_after_a_refusal_nothing_is_parsed(world: World) -> None:
    line = Line(fast_path.protocol(world.kept), world)
    await line.hear(PLAIN + b"no HTTP\r\n\r\n" + PLAIN * 1000)
    assert (len(line.answers), line.closed, line.reading) == (2, True, True)


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


class Line:
    """A connection to `kind` of protocol without a socket: what was written, and whether it was closed."""

    def __init__(self, kind: type[BoundedProtocol], world: World, loop: Any = None) -> None:
        config = uvicorn.Config(world, http=kind, lifespan="off", log_config=None, ws="none", timeout_keep_alive=5)
        config.load()
        state = uvicorn.server.ServerState()
        self.written, self.closed, self.reading = bytearray(), False, True
        self.protocol = kind(config=config, server_state=state, app_state={}, _loop=loop)
        self.protocol.connection_made(self)  # type: ignore[arg-type]

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, _name: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    async def hear(self, data: bytes) -> None:
        if not self.closed:
            self.protocol.data_received(data)
        before = -1
        while len(self.written) > before:
            before = len(self.written)
            for _ in range(10):
                await asyncio.sleep(0)

    @property
    def answers(self) -> list[tuple[list[bytes], bytes]]:
        """Head, its lines in any order, and body of each."""
        parts = bytes(self.written).split(b"HTTP/1.1 ")[1:]
        return [
            (sorted(head.split(b"\r\n")), body) for head, _, body in (part.partition(b"\r\n\r\n") for part in parts)
        ]


ODD = [
    asked(tag='"old"'),
    asked(f"{PATH}?page=1"),
    asked(f"{PATH}?page=2"),
    asked(tag="*"),
    asked(tag='"other"', more=f"If-None-Match: {DOCUMENT.etag}\r\n"),
    asked(tag=DOCUMENT.etag, more='If-None-Match: "other"\r\n'),
    asked("/missing", MISSING.etag),
    asked("/%63atalogue"),
    asked("/catalogue#all"),
    PLAIN.replace(PATH.encode(), b"/echo/%63?a=%62"),
    PLAIN.replace(PATH.encode(), b"/echo/c?a=b#c"),
    asked("/echo/c", Document(b"/echo/c b''").etag),
    asked(method="HEAD"),
    asked(method="OPTIONS"),
    asked(method="POST", more="Content-Length: 3\r\n", body="abc"),
    asked(more="Content-Length: 3\r\n", body="abc"),
    asked(more="Content-Length: 14\r\n", body="GET / HTTP/1.1"),
    asked(more="Transfer-Encoding: chunked\r\n", body="3\r\nabc\r\n0\r\n\r\n"),
    asked(more="Expect: 100-continue\r\n"),
    asked(more="Connection: close\r\n"),
    asked().replace(b"HTTP/1.1", b"HTTP/1.0"),
    asked(more="Connection: keep-alive\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"),
    asked(more="X: \0\r\n"),
    b"\r\n",
    b"no HTTP\r\n\r\n",
]
CHANGE = b""
"""In the tests below: the document is another from here on, or the first one again."""
PIECES = st.sampled_from([PLAIN, asked(), CHANGE]) | st.sampled_from(ODD)
"""Half of them usual ones: it takes the same one twice, and a change between them, to find an answer that is old."""


@pytest.mark.fuzz
@hostile(400)
@given(said=st.lists(PIECES, max_size=8), cuts=st.lists(st.integers(0, 400), max_size=4))
@example(said=[asked(), asked()[:20], asked()], cuts=[])
@example(said=[PLAIN, CHANGE, PLAIN, asked(), CHANGE, asked(), CHANGE, asked()], cuts=[])
@example(said=[asked() * 2, asked() * 2], cuts=[])
@example(said=[asked()[:30], asked()[30:] + asked(), asked()[30:] + asked()], cuts=[])
@example(said=[PLAIN * 500 + asked(tag='"old"') + ODD[9], asked()], cuts=[])
@example(said=[ODD[9] * 300, asked(), asked(), asked()], cuts=[])
@example(said=[asked(more="Content-Length: 9000\r\n", body="a" * 9000), asked(), asked()], cuts=[])
@example(said=[asked(more="Content-Length: 9\r\n", body="a")] * 2, cuts=[])
def test_no_reader_can_tell_which_way_an_answer_came(said: list[bytes], cuts: list[int]) -> None:
    """The same bytes in the same pieces to this protocol and to the one without a short way."""

    async def both() -> list[tuple[bool, list[tuple[list[bytes], bytes]]]]:
        found = []
        for short in (True, False):
            world = World()
            line = Line(fast_path.protocol(world.kept) if short else BoundedProtocol, world)
            for number, piece in enumerate(said):
                if piece == CHANGE:
                    same = world.documents[PATH] is DOCUMENT
                    world.documents[PATH] = Document(b'{"servers":[1]}') if same else DOCUMENT
                cut = cuts[number] if number < len(cuts) else 0
                for part in (piece[:cut], piece[cut:]):
                    if part:
                        await line.hear(part)
            found.append((line.closed, line.answers))
        return found

    with_it, without = asyncio.run(both())
    assert with_it == without


@pytest.mark.parametrize("request_", [PLAIN, asked()], ids=["whole", "unchanged"])
async def test_who_does_not_read_is_not_written_to(world: World, request_: bytes) -> None:
    line = Line(fast_path.protocol(world.kept), world)
    await line.hear(request_)
    first = bytes(line.written)
    line.protocol.pause_writing()
    await line.hear(request_)
    assert bytes(line.written) == first
    line.protocol.resume_writing()
    await line.hear(request_)
    assert len(line.answers) == 3


async def test_who_goes_on_asking_is_kept_and_who_falls_silent_is_not(world: World) -> None:
    now, timers = [0.0], []

    def call_later(delay: float, callback: Callable[[], None]) -> SimpleNamespace:
        if callback.__name__ != "_check":  # the one look that each connection has (pallas_service.http.connections)
            timers.append((now[0] + delay, callback))
        due = now[0] + delay
        return SimpleNamespace(cancel=lambda: None, when=lambda: due)

    line = Line(fast_path.protocol(world.kept), world, SimpleNamespace(time=lambda: now[0], call_later=call_later))
    for now[0] in (0.0, 2.0, 4.0):
        await line.hear(asked())
        assert line.protocol._turn_to_go() == (0, now[0])
    assert [due for due, _ in timers] == [5.0], "answers given again set no timer"
    now[0], ring = timers.pop()
    ring()
    assert (line.closed, [due for due, _ in timers]) == (False, [9.0])
    now[0], ring = timers.pop()
    ring()
    assert line.closed

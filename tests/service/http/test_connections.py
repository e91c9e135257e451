"""Connections that take their time, and more of them than there may be: on real sockets, with small numbers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pallas_service.http import connections
from pallas_service.http.protocol import BoundedProtocol, Connection, Joining

DEADLINE = 60.0
GET = b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n"
EARLY = b"POST /other HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n"
"""A head that is answered before its body comes."""
LARGE = 16 << 20
POST = b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n"


class Gone(asyncio.Transport):
    """A connection that has ended, as uvloop has it before it tells."""

    closing = False

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        if self.closing:
            raise RuntimeError("the handler is closed")
        self.closing = True

    def get_extra_info(self, name: str, default: Any = None) -> str:
        return name


def test_what_is_written_to_a_connection_that_has_ended_is_dropped() -> None:
    connection = Connection(Gone())
    connection.write(b"seen")
    connection.write(b"lost")
    assert (connection.is_closing(), connection.get_extra_info("peername")) == (True, "peername")


class Sent(asyncio.Transport):
    """A connection that notes each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True


async def test_a_head_leaves_with_its_body_and_waits_for_no_later_one() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    sent = Sent()
    connection = Joining(sent)
    connection.write(head)
    connection.write(b"ok")
    connection.write(b"more")
    assert sent.writes == [head + b"ok", b"more"]
    connection.write(head)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sent.writes[2:] == [head]
    connection.write(head)
    connection.close()
    assert (sent.writes[3:], sent.closed) == ([head], True)
    connection.write(head)
    connection.write(b"lost")
    assert len(sent.writes) == 4


class Peer:
    """One connection by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def status(self) -> int:
        """Return the status of the next answer, 0 where the connection is closed without one."""
        async with asyncio.timeout(DEADLINE):
            head = await self.reader.readuntil(b"\r\n\r\n") if not self.reader.at_eof() else b""
        body = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await self.reader.readexactly(body)
        return int(head.split()[1])

    async def rest(self) -> bytes:
        """Return all that comes until the other end closes the connection."""
        async with asyncio.timeout(DEADLINE):
            return await self.reader.read()


class Site:
    """A server whose `/body` reads one, and whose `/wait` answers when `release` is set."""

    def __init__(self) -> None:
        self.aborted, self.release, self.waiting = asyncio.Event(), asyncio.Event(), asyncio.Semaphore(0)
        self.answering = asyncio.Semaphore(0)
        self.port = 0
        self.peers: list[Peer] = []
        self.clients: list[socket.socket] = []
        self.connections: set[Any] = set()

    async def body(self, request: Request) -> Response:
        try:
            return PlainTextResponse(str(len(await request.body())))
        except ClientDisconnect:
            self.aborted.set()
            return Response()

    async def wait(self, request: Request) -> Response:
        self.waiting.release()
        await self.release.wait()
        return PlainTextResponse("waited")

    async def livez(self, request: Request) -> Response:
        return PlainTextResponse("ok")

    async def large(self, request: Request) -> Response:
        """Answer with more than both ends of a connection hold."""
        self.answering.release()
        return PlainTextResponse("x" * LARGE)

    async def deaf(self, data: bytes) -> socket.socket:
        """Return a connection whose client sends and does not read."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", self.port))
        await loop.sock_sendall(client, data)
        self.clients.append(client)
        await self.answering.acquire()
        return client

    async def connect(self, data: bytes = b"") -> Peer:
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self.port))
        self.peers.append(peer)
        await peer.send(data)
        return peer


@asynccontextmanager
async def serving(**numbers: Any) -> AsyncIterator[Site]:
    site = Site()
    routes = [
        Route("/body", site.body, methods=["POST"]),
        *(Route(path, view) for path, view in (("/wait", site.wait), ("/livez", site.livez), ("/other", site.livez))),
        Route("/large", site.large),
    ]
    protocol = type("Small", (BoundedProtocol,), {"look_seconds": 0.02, **numbers})
    config = uvicorn.Config(Starlette(routes=routes), http=protocol, port=0, lifespan="off", log_config=None, ws="none")
    config.timeout_graceful_shutdown = 1
    config.timeout_keep_alive = connections.KEEP_ALIVE_SECONDS
    server = uvicorn.Server(config)
    site.connections = server.server_state.connections
    running = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0)
    site.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        site.release.set()
        for client in site.clients:
            client.close()
        for peer in site.peers:
            peer.writer.close()
            with contextlib.suppress(ConnectionError):
                await peer.writer.wait_closed()
        server.should_exit = True
        await running


async def until_paused(connection: Any) -> None:
    async with asyncio.timeout(DEADLINE):
        while not connection.flow.write_paused:
            await asyncio.sleep(0)


async def until_empty(connections: set[Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while connections:
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"\r\n", b""),
        (b"GET /livez HTTP/1.1\r\nhost:", b"HTTP/1.1 408 "),
        (b"G", b"HTTP/1.1 408 "),
    ],
    ids=["nothing", "an empty line", "half a head", "a letter"],
)
async def test_a_head_has_a_deadline(sent: bytes, answer: bytes) -> None:
    async with serving(head_seconds=0.1) as site:
        peer = await site.connect(sent)
        assert (await peer.rest())[: len(answer) or None] == answer


async def test_empty_lines_between_requests_are_no_way_around_it() -> None:
    async with serving(head_seconds=0.1) as site:
        peer = await site.connect(GET % b"/livez")
        assert await peer.status() == 200
        await peer.send(b"\r\n")
        assert await peer.rest() == b""


@pytest.mark.parametrize(
    "numbers", [{"stall_seconds": 0.1}, {"stall_seconds": 2 * DEADLINE, "body_seconds": 0.1}], ids=["stalls", "lasts"]
)
async def test_a_client_that_was_answered_before_its_body_came_gets_no_second_answer(numbers: dict[str, float]) -> None:
    """As with 401: many clients send head and body apart, and would take a late 408 for their next answer."""
    async with serving(**numbers) as site:
        peer = await site.connect(EARLY)
        assert await peer.status() == 405
        assert await peer.rest() == b""


async def test_a_connection_whose_body_came_after_the_answer_is_kept_like_any_other() -> None:
    async with serving(head_seconds=0.0) as site:
        answered = await site.connect(EARLY)
        assert await answered.status() == 405
        await answered.send(b"body")
        slow = await site.connect(b"GET")  # whose time begins after that of the other
        assert (await slow.rest()).startswith(b"HTTP/1.1 408 ")
        await answered.send(GET % b"/livez")
        assert await answered.status() == 200


@pytest.mark.parametrize(
    "numbers", [{"stall_seconds": 0.1}, {"stall_seconds": 2 * DEADLINE, "body_seconds": 0.1}], ids=["stalls", "lasts"]
)
async def test_a_body_has_to_come(numbers: dict[str, float]) -> None:
    async with serving(**numbers) as site:
        peer = await site.connect(POST + b"x")
        assert (await peer.rest()).startswith(b"HTTP/1.1 408 ")
        await asyncio.wait_for(site.aborted.wait(), DEADLINE)


@pytest.mark.parametrize("waits_for", ["_waiting", "_body_since"], ids=["head", "body"])
def test_time_in_which_nobody_here_reads_is_not_the_senders(waits_for: str) -> None:
    ended: list[bytes] = []

    class Noting(connections.TimedProtocol):
        def hang_up(self, answer: bytes = b"") -> None:
            ended.append(answer)

    protocol: Any = object.__new__(Noting)
    protocol.cycle = SimpleNamespace(response_complete=False)
    protocol.flow = SimpleNamespace(read_paused=True)
    protocol._head_begun = True
    setattr(protocol, waits_for, 0.0)
    look = connections.LOOK_SECONDS
    paused = 2 * connections.BODY_SECONDS
    for number in range(1, int(paused / look) + 1):
        protocol._check_received(number * look)
    protocol.flow.read_paused = False
    protocol._check_received(paused + look)
    assert ended == []
    protocol._check_received(paused + connections.STALL_SECONDS)
    assert [answer[:13] for answer in ended] == [b"HTTP/1.1 408 "]


async def test_an_answer_may_take_as_long_as_it_takes() -> None:
    """Deadlines are for what a client sends, not for what is done with it."""
    async with serving(head_seconds=0.05, stall_seconds=0.05, body_seconds=0.05) as site:
        peer = await site.connect(GET % b"/wait")
        await site.waiting.acquire()
        slow = await site.connect(b"GET")
        assert (await slow.rest()).startswith(b"HTTP/1.1 408 ")
        site.release.set()
        assert await peer.status() == 200


@pytest.mark.parametrize(
    "sent",
    [
        GET % b"/large",
        b"GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        2 * (GET % b"/large"),
    ],
    ids=["kept", "closed", "another under way"],
)
async def test_who_never_reads_an_answer_does_not_keep_the_connection(sent: bytes) -> None:
    async with serving(unread_seconds=0.1) as site:
        await site.deaf(sent)
        await until_empty(site.connections)


@pytest.mark.parametrize(
    ("unread", "verdicts"),
    [
        ([300_000, 260_000, 200_000, 150_000, 120_000], [False, False, False, False, False]),
        ([300_000, 299_000, 298_000], [False, False, True]),
        ([300_000, 200_000, 200_000, 200_000, 200_000], [False, False, False, False, True]),
        ([300_000, 300_000, 0, 300_000, 300_000, 300_000], [False, False, False, False, False, True]),
    ],
    ids=["slowly", "next to nothing", "no more of it", "another one"],
)
def test_an_answer_may_be_read_slowly(unread: list[int], verdicts: list[bool]) -> None:
    """Bytes that wait at looks half a minute apart, and whether the connection ends then."""
    waiting = iter(unread)
    transport = SimpleNamespace(
        get_write_buffer_size=lambda: next(waiting), is_closing=lambda: False, get_extra_info=lambda name: None
    )
    protocol: Any = SimpleNamespace(
        transport=transport, flow=SimpleNamespace(write_paused=True), unread_seconds=60.0, _unread_since=None, _unread=0
    )
    times = [30.0 * look for look in range(len(unread))]
    assert [connections.TimedProtocol._is_unread(protocol, now) for now in times] == verdicts


async def test_an_answer_that_is_read_in_parts_begins_anew_with_each() -> None:
    async with serving() as site:
        client = await site.deaf(GET % b"/large")
        [connection] = site.connections
        async with asyncio.timeout(DEADLINE):
            while connection._unread_since is None:
                await asyncio.sleep(0)
            connection._look.cancel()  # the next look would see it too, unless the same has been written again
            while connection.flow.write_paused:
                await asyncio.get_running_loop().sock_recv(client, 1 << 20)
        assert connection._unread_since is None


async def test_what_the_system_holds_for_who_reads_slowly_counts() -> None:
    """It holds megabytes, so that a client may read for minutes before anything more is taken from us."""
    async with serving(look_seconds=2 * DEADLINE) as site:
        client = await site.deaf(GET % b"/large")
        [connection] = site.connections
        await until_paused(connection)
        buffered = connection.transport.get_write_buffer_size()
        assert not connection._is_unread(0.0)
        taken = 4 * connections.BODY_RATE * connections.UNREAD_SECONDS
        async with asyncio.timeout(DEADLINE):
            while taken > 0:
                taken -= len(await asyncio.get_running_loop().sock_recv(client, 1 << 14))
        assert connection.transport.get_write_buffer_size() == buffered, "choose less to read"
        assert not connection._is_unread(connections.UNREAD_SECONDS)
        assert connection._is_unread(2 * connections.UNREAD_SECONDS)


@pytest.mark.parametrize("sent", [GET % b"/large", 2 * (GET % b"/large")], ids=["idle", "another under way"])
async def test_those_who_never_read_make_room(sent: bytes) -> None:
    async with serving(most=2, stall_seconds=0.0, unread_seconds=10 * DEADLINE) as site:
        for _ in range(2):
            await site.deaf(sent)
        for connection in site.connections:
            async with asyncio.timeout(DEADLINE):
                while connection._unread_since is None:
                    await asyncio.sleep(0)
        peer = await site.connect(GET % b"/other")
        assert await peer.status() == 200
        async with asyncio.timeout(DEADLINE):
            while len(site.connections) > 2:  # one that is only closed stays until its client reads
                await asyncio.sleep(0)


async def test_who_reads_makes_no_room() -> None:
    """At any moment a large answer waits for the network, however fast its client is."""
    async with serving(most=1) as site:
        client = await site.deaf(GET % b"/large")
        await until_paused(*site.connections)
        assert await (await site.connect(GET % b"/other")).status() == 503
        received = 0
        async with asyncio.timeout(DEADLINE):
            while received < LARGE:
                received += len(await asyncio.get_running_loop().sock_recv(client, 1 << 20))


async def test_who_is_idle_makes_room_before_who_reads_an_answer() -> None:
    async with serving(most=2) as site:
        client = await site.deaf(GET % b"/large")
        idle = await site.connect(GET % b"/livez")
        assert await idle.status() == 200
        assert await (await site.connect(GET % b"/other")).status() == 200
        assert await idle.rest() == b""
        received = 0
        async with asyncio.timeout(DEADLINE):
            while piece := await asyncio.get_running_loop().sock_recv(client, 1 << 20):
                received += len(piece)
                if received > LARGE:
                    break
        assert received > LARGE


async def test_who_waits_longest_for_nothing_makes_room() -> None:
    async with serving(most=3) as site:
        first, second, third = [await site.connect(GET % b"/livez") for _ in range(3)]
        for peer in (first, second, third):
            assert await peer.status() == 200
        for peer in (second, third):
            await peer.send(b"GET /livez HTTP/1.1\r\n")
        fourth = await site.connect(GET % b"/other")
        assert await fourth.status() == 200
        assert await first.rest() == b""
        await second.send(b"host: x\r\n\r\n")
        assert await second.status() == 200


async def test_nothing_is_kept_of_a_connection_that_was_reset() -> None:
    async with serving() as site:
        peer = await site.connect(GET % b"/livez")
        assert await peer.status() == 200
        [connection] = site.connections
        timer = connection.timeout_keep_alive_task
        peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.writer.transport.abort()
        await until_empty(site.connections)
        assert timer.cancelled()


async def test_of_idle_connections_the_one_idle_longest_makes_room() -> None:
    async with serving(most=3) as site:
        first, second, third = [await site.connect(GET % b"/livez") for _ in range(3)]
        for peer in (first, second, third):
            assert await peer.status() == 200
        for peer in (first, third):
            await peer.send(GET % b"/livez")
            assert await peer.status() == 200
        assert await (await site.connect(GET % b"/livez")).status() == 200
        assert await second.rest() == b""
        for peer in (first, third):
            await peer.send(GET % b"/livez")
            assert await peer.status() == 200


async def test_probes_are_answered_where_all_connections_have_calls_under_way() -> None:
    async with serving(most=2) as site:
        busy = [await site.connect(GET % b"/wait") for _ in range(2)]
        for _ in busy:
            await site.waiting.acquire()
        assert (await (await site.connect(GET % b"/livez?x=1")).rest()).startswith(b"HTTP/1.1 200 ")
        refused = await (await site.connect(GET % b"/other")).rest()
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 5\r\n" in refused
        site.release.set()
        assert [await peer.status() for peer in busy] == [200, 200]


async def test_slow_connections_without_number_are_no_way_past_the_probes() -> None:
    async with serving(most=2) as site:
        for _ in range(connections.SPARE + 10):
            await site.connect(b"GET /livez HTTP/1.1\r\n")
        assert await (await site.connect(GET % b"/livez")).status() == 200


@pytest.mark.parametrize(("files", "most"), [(None, connections.CONNECTIONS), (64, 16), (1 << 20, 10_000), (2, 1)])
def test_there_are_files_left_for_what_a_service_asks(
    files: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit: Callable[[], int | None] = lambda: files  # noqa: E731
    monkeypatch.setattr(connections, "raise_file_limit", limit)
    assert connections.most_connections() == most

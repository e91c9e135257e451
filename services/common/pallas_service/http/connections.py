"""Limits of connections, for both services: their number, and the time each may take for what it sends.

uvicorn waits for heads and bodies without an end, and takes connections until there are no file descriptors left: then
not even a probe of the kubelet is answered, and a service that is well is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import resource
import sys
import termios

import structlog
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pallas_contract import names

HEAD_SECONDS = 15.0
"""Seconds that a connection may take until the head of its next request is there."""
KEEP_ALIVE_SECONDS = 120
"""Seconds that a connection stays open without a request.

Longer than clients keep theirs (httpx and Node 5 s, aiohttp 15 s, nginx and AWS before a server 60 s, Go and reqwest
90 s): who closes first must be the client, or its next call meets a connection that we close at that moment, and a POST
is not sent again. uvicorn's own 5 s are those of httpx. It costs descriptors only, and idle connections make room.
"""
STALL_SECONDS = 15.0
"""Seconds of a body in which at least `BODY_RATE` bytes a second must come."""
BODY_RATE = 1 << 10
BODY_SECONDS = 300.0
"""Seconds that a whole body may take."""
UNREAD_SECONDS = 60.0
"""Seconds of an answer that waits for its client in which at least `BODY_RATE` bytes a second must be taken: who never
reads would keep the connection for ever, also once it is closed here."""
LOOK_SECONDS = 5.0
"""Seconds between two looks at a connection: one timer for all of its requests, since setting one for each would show
in what a request costs. So all of the above may be that much more."""
CONNECTIONS = 10_000
"""Most connections at once, or a quarter of the file descriptors: the rest is for what the service asks itself."""
SPARE = 16
"""Connections beyond them, on which probes only are answered."""
PROBES = frozenset({names.LIVE_PATH.encode(), names.READY_PATH.encode()})

QUIET_SECONDS = 60.0
"""Seconds between two lines in the log about too many connections."""

log = structlog.get_logger(__name__)

_SLOW = b"request timeout\n"
_TIMEOUT = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_SLOW), _SLOW)
)


def raise_file_limit() -> int | None:
    """Raise the soft limit of file descriptors, which is there for programs that use `select`, to the hard one.

    Returns the limit, None where there is none.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS refuses what it calls unlimited
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return None if soft == resource.RLIM_INFINITY else soft


def most_connections() -> int:
    """Return how many connections may be open at once besides `SPARE`, 1 at least."""
    files = raise_file_limit()
    return CONNECTIONS if files is None else max(1, min(CONNECTIONS, files // 4))


def _outstanding(transport: asyncio.Transport) -> int:
    """Return the bytes that were written and that no client has, those in the kernel among them where that is told.

    It takes megabytes, and asks for more only when a third is free: by the buffer of the transport alone one that reads
    10 KiB a second looks for minutes as if it read nothing.
    """
    buffered = transport.get_write_buffer_size()
    if buffered and (sock := transport.get_extra_info("socket")) is not None:
        with contextlib.suppress(OSError, ValueError):  # macOS does not tell, nor a socket that is closed
            sent = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
            buffered += int.from_bytes(sent, sys.byteorder)
    return buffered


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("too many connections\n", 503, {"retry-after": "5"})(scope, receive, send)


class TimedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with deadlines for what is sent, and a bound for connections.

    Where there are too many, the one that has waited longest for a request of its client makes room, also one of which
    a part is there; then the one whose client has not read its answer for longest, `stall_seconds` at least. Where all
    of them have calls under way, what comes is told to come again, probes excepted.
    """

    head_seconds = HEAD_SECONDS
    stall_seconds = STALL_SECONDS
    body_seconds = BODY_SECONDS
    unread_seconds = UNREAD_SECONDS
    look_seconds = LOOK_SECONDS
    most: int | None = None
    """Most connections; None asks the system once."""
    told = -QUIET_SECONDS

    _waiting: float | None = None
    """Time (the loop's) since which it waits for a head; None while there is a request, or uvicorn's timer runs."""
    _head_begun = False
    """Whether a part of that head is there: a 408 to anybody else would be read as the answer to the next request."""
    _body_since: float | None = None
    """Time at which the body that is not complete began."""
    _window = 0.0
    """Time from which bytes of the body are counted; `_bytes` came since."""
    _bytes = 0
    _unread_since: float | None = None
    """Time from which bytes that wait for the client are counted; there were `_unread` of them."""
    _unread = 0
    _taken_at = 0.0
    """Time of the last look at which there were fewer of them than before: `_left`."""
    _left = 0
    _crowded = False
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._waiting = self.loop.time()
        self._look = self.loop.call_later(self.look_seconds, self._check)
        if TimedProtocol.most is None:
            TimedProtocol.most = most_connections()
        if len(self.connections) > (self.most or 1):
            self._make_room(self.most or 1)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._look is not None:
            self._look.cancel()
        # uvicorn leaves its timer to a connection that was reset, which would keep all of it for KEEP_ALIVE_SECONDS
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        idle = self._waiting is None and self._body_since is None and self.timeout_keep_alive_task is None
        if idle and (self.cycle is None or self.cycle.response_complete):
            self._waiting = self.loop.time()  # empty lines ended uvicorn's timer

    def resume_writing(self) -> None:
        self._unread_since = None  # most of it was taken, and more follows
        super().resume_writing()

    def on_message_begin(self) -> None:
        self._waiting = self.loop.time()
        self._head_begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._waiting = None
        self._head_begun = False
        self._body_since = self._window = self.loop.time()
        self._bytes = 0
        if not self._crowded:
            super().on_headers_complete()
            return
        if self.url.partition(b"?")[0] not in PROBES:
            self.app = _busy
        super().on_headers_complete()
        self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._waiting = self._body_since = None
        self._head_begun = False
        super().on_message_complete()
        if self.cycle.response_complete and self.timeout_keep_alive_task is None:
            # the body came after its answer, and ended uvicorn's timer
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def hang_up(self, answer: bytes = b"") -> None:
        """Close the connection, with `answer` where none has begun; who reads the body is told that nobody sends it."""
        cycle = self.cycle
        under_way = cycle is not None and not cycle.response_complete
        if answer and not (under_way and cycle.response_started):
            self.transport.write(answer)
        if under_way:
            cycle.disconnected = True  # it writes no more behind our answer
            cycle.message_event.set()
        self.transport.close()

    def _check(self) -> None:
        now = self.loop.time()
        if self._is_unread(now):
            self.transport.abort()
            return
        if not self.transport.is_closing():
            self._check_received(now)
        self._look = self.loop.call_later(self.look_seconds, self._check)

    def _check_received(self, now: float) -> None:
        if self.flow.read_paused:
            self._forgive(now)
        elif self._waiting is not None and now - self._waiting >= self.head_seconds:
            self.hang_up(_TIMEOUT if self._head_begun else b"")
        elif self._body_since is not None and self._is_late(now, self._body_since):
            # a client that has its answer would take a 408 for that to its next request
            self.hang_up(b"" if self.cycle.response_complete else _TIMEOUT)

    def _is_unread(self, now: float) -> bool:
        """Return True where a client does not take what was written: nothing more is, until it has."""
        unread = _outstanding(self.transport) if self.flow.write_paused or self.transport.is_closing() else 0
        if not unread or self._unread_since is None:
            self._unread_since, self._unread = (now, unread) if unread else (None, 0)
            self._taken_at, self._left = now, unread
            return False
        if unread < self._left:
            self._taken_at, self._left = now, unread
        if now - self._unread_since < self.unread_seconds:
            return False
        stuck = self._unread - unread < BODY_RATE * (now - self._unread_since)
        self._unread_since, self._unread = now, unread
        return stuck

    def _forgive(self, now: float) -> None:
        """Move the deadlines: time in which nobody here reads is not the sender's."""
        if self._waiting is not None:
            self._waiting += self.look_seconds
        if self._body_since is not None:
            self._body_since += self.look_seconds
        self._window = now

    def _is_late(self, now: float, since: float) -> bool:
        """Return True for a body that stalls, or that lasts too long."""
        if now - self._window < self.stall_seconds:
            return now - since >= self.body_seconds
        stalled = self._bytes < BODY_RATE * (now - self._window)
        self._window = now
        self._bytes = 0
        return stalled

    def _make_room(self, most: int) -> None:
        """Close those that wait longest for their clients; where none does, this connection answers probes only.

        A hundredth of them at a time: whoever opens connections in a flood makes us look through all of them.
        """
        if self.loop.time() - TimedProtocol.told >= QUIET_SECONDS:
            TimedProtocol.told = self.loop.time()
            log.warning("too_many_connections", most=most)
        others = [other for other in self.connections if other is not self and isinstance(other, TimedProtocol)]
        waiting = [other for other in others if other._is_waiting()]
        for other in sorted(waiting, key=TimedProtocol._turn_to_go)[: max(1, most // 100)]:
            is_stuck = other._is_stuck()
            other.hang_up()
            if is_stuck:
                other.transport.abort()  # it would stay until its client reads
        self._crowded = not waiting
        if self._crowded and len(self.connections) > most + SPARE:
            self.transport.close()

    def _is_waiting(self) -> bool:
        if self.flow.write_paused or self.transport.is_closing():  # also where a call is under way
            return self._is_stuck()
        return self._waiting is not None or self._body_since is not None or self.timeout_keep_alive_task is not None

    def _is_stuck(self) -> bool:
        """Return whether its client has not read for a while: at any moment one that reads has something to read."""
        return self._unread_since is not None and self.loop.time() - self._taken_at >= self.stall_seconds

    def _turn_to_go(self) -> tuple[int, float]:
        """Return whether it is idle (0), sends a head (1), a body (2) or does not read (3), and since when."""
        if self._is_stuck():
            return (3, self._taken_at)
        if self._body_since is not None:
            return (2, self._body_since)
        if self._waiting is not None:
            return (1, self._waiting)
        return (0, self._idle_since())

    def _idle_since(self) -> float:
        timer = self.timeout_keep_alive_task
        return timer.when() - self.timeout_keep_alive if timer else 0.0

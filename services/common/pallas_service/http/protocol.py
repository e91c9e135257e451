"""Bounds for what a server reads before it knows what is asked: uvicorn's HTTP protocol, for both services.

Neither uvicorn's httptools protocol nor llhttp bounds a head, nor how many requests may wait for the answers before
them; only the extras `registry` and `agent` bring uvicorn along.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.flow_control import FlowControl

from pallas_service.http.connections import TimedProtocol

HEAD = 64 << 10
"""Most bytes of a request's URL, headers and trailers together, without what separates them."""
PIECE = 4 << 10
"""Most bytes that are parsed in a turn of the loop once requests wait: one read may bring thousands of requests."""

_TOO_LARGE = b"request header fields too large\n"
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_TOO_LARGE), _TOO_LARGE)
)


class _TooLarge(Exception):
    """Raised in a callback, it ends the parser's work: httptools makes a parser error of it."""


class _Flow(FlowControl):
    """Flow control that reads nothing new while bytes are held back: uvicorn would go on reading after each answer."""

    holding = False

    def resume_reading(self) -> None:
        if not self.holding:
            super().resume_reading()


class Connection:
    """A transport that drops what is written once it is closing, as those of asyncio do.

    uvloop's raises between the end of a connection and the moment in which uvicorn is told of it; an answer that is
    sent just then, to a client that has hung up, would be an error with a traceback in the log.
    """

    __slots__ = ("_transport",)

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()  # asked several times for each request: `__getattr__` is slow

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Joining(Connection):
    """A connection that keeps the head of an answer for what follows it in the same turn of the loop.

    uvicorn writes them one by one: two system calls, and a client that wakes up twice.
    """

    __slots__ = ("_head", "_loop")

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._loop = asyncio.get_running_loop()
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._head:
            data = self._head + data
            self._head = b""
        elif data.startswith(b"HTTP/1.") and data.endswith(b"\r\n\r\n"):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        super().write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")


class BoundedProtocol(TimedProtocol):
    """Answers 431 and hangs up where a head goes beyond `HEAD`.

    httptools gives a header only when it is complete, so bytes in which nothing was completed are counted too: of those
    no more than `HEAD` and what two reads of a socket bring is ever kept. Of requests that are sent without waiting for
    answers (pipelining) a piece is parsed, and the next one when all of the piece before have had their turn.
    """

    connection: type[Connection] = Connection
    _head = 0
    _unfinished = 0
    _progress = False
    _backlog = memoryview(b"")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(cast("asyncio.Transport", self.connection(transport)))
        self.flow = _Flow(transport)

    def data_received(self, data: bytes) -> None:
        if len(data) <= PIECE and not self.pipeline and not self._backlog:
            self._parse(data)
            return
        self._backlog = memoryview(b"".join((self._backlog, data)))
        self._go_on()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._backlog and not self.pipeline:
            self.loop.call_soon(self._go_on)  # not at once: this may be the parser's own callback

    def _go_on(self) -> None:
        """Parse what is held as far as nothing waits in the pipeline; bodies never do."""
        flow = cast("_Flow", self.flow)
        while self._backlog and not self.pipeline and not self.transport.is_closing():
            piece = self._backlog[:PIECE]
            self._backlog = self._backlog[PIECE:]
            if not self._backlog:
                flow.holding = False
                flow.resume_reading()
            self._parse(bytes(piece))
        if self.transport.is_closing():
            self._backlog = self._backlog[:0]
        elif self._backlog:
            flow.holding = True
            flow.pause_reading()

    def _parse(self, data: bytes) -> None:
        self._progress = False
        super().data_received(data)
        self._unfinished = 0 if self._progress else self._unfinished + len(data)
        if self._unfinished > HEAD and not self.transport.is_closing():
            self._refuse()

    def send_400_response(self, msg: str) -> None:
        if self._head > HEAD:
            self._refuse()
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        self._head = 0
        self._progress = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # a request has a dozen of them: what `_count` does, without another call
        self._head += len(name) + len(value)
        self._progress = True
        if self._head > HEAD:
            raise _TooLarge
        # httptools leaves the space after a value, which is no part of it (RFC 9110, 5.5)
        super().on_header(name, value.strip(b" \t"))

    def on_body(self, body: bytes) -> None:
        self._progress = True
        super().on_body(body)

    def _count(self, size: int) -> None:
        self._head += size
        self._progress = True
        if self._head > HEAD:
            raise _TooLarge

    def _refuse(self) -> None:
        self.transport.write(_REFUSAL)
        self.transport.close()

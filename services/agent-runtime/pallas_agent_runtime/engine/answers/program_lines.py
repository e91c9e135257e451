"""How large a line of an MCP server on stdio may be: a line is one message.

The MCP SDK collects a line without a limit, and copies what it has of it with each piece that comes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

from anyio.abc import AnyByteReceiveStream, ByteReceiveStream, ObjectReceiveStream, ObjectSendStream
from anyio.streams.text import TextReceiveStream
from fast_agent.mcp import stdio_tracking_simple
from mcp.client import stdio
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from pallas_agent_runtime.engine.patches import replaced
from pallas_contract.json_values import has_more_values

Refusal = Callable[[str, str], str]
"""Maps the name of a server, and the bound that a message is beyond, to what is wrong; empty is that of its bytes."""


class _Program:
    """A server on stdio, and the requests that it has not answered."""

    def __init__(self, name: str, limit: int, most_values: int, refusal: Refusal) -> None:
        self.limit = limit
        self.most_values = most_values
        self.open: set[RequestId] = set()
        self._name = name
        self._refusal = refusal

    def refuse(self, bound: str = "") -> bytes:
        """Return an error for each open request: nobody knows which of them a line answers that was not read."""
        error = ErrorData(code=INTERNAL_ERROR, message=self._refusal(self._name, bound))
        answers = [JSONRPCError(jsonrpc="2.0", id=number, error=error) for number in sorted(self.open, key=str)]
        return b"".join(answer.model_dump_json(by_alias=True).encode() + b"\n" for answer in answers)


_program: ContextVar[_Program | None] = ContextVar("program", default=None)
"""The one that is being started; the task that reads from it is made in this context."""


@contextmanager
def bounded(limit: int, most_values: int, refusal: Refusal) -> Iterator[None]:
    """Have a line of more than `limit` bytes or of more than `most_values` values be an error meanwhile."""

    @asynccontextmanager
    async def stdio_client(parameters: Any, **settings: Any) -> AsyncIterator[tuple[_Answers, _Requests]]:
        program = _Program(getattr(settings.get("errlog"), "server_name", ""), limit, most_values, refusal)
        async with AsyncExitStack() as stack:
            outer = _program.set(program)
            try:
                streams = await stack.enter_async_context(stdio.stdio_client(parameters, **settings))
            finally:
                _program.reset(outer)
            yield _Answers(streams[0], program), _Requests(streams[1], program)

    with (
        replaced(stdio_tracking_simple, "stdio_client", stdio_client),
        replaced(stdio, "TextReceiveStream", _text),
    ):
        yield


def _text(stream: AnyByteReceiveStream, **settings: Any) -> TextReceiveStream:
    program = _program.get()
    return TextReceiveStream(_Lines(stream, program) if program else stream, **settings)


class _Requests(ObjectSendStream[SessionMessage]):
    """What goes to a program."""

    def __init__(self, stream: Any, program: _Program) -> None:
        self._stream = stream
        self._program = program

    async def send(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCRequest):
            self._program.open.add(item.message.id)
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Answers(ObjectReceiveStream[SessionMessage | Exception]):
    """What comes from a program."""

    def __init__(self, stream: Any, program: _Program) -> None:
        self._stream = stream
        self._program = program

    async def receive(self) -> SessionMessage | Exception:
        item: SessionMessage | Exception = await self._stream.receive()
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._program.open -= {item.message.id}
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Lines(ByteReceiveStream):
    """The output of a program in whole lines; of one that is too long come errors instead."""

    def __init__(self, stream: AnyByteReceiveStream, program: _Program) -> None:
        self._stream = stream
        self._program = program
        self._pieces: list[bytes] = []
        """Of the line whose end has not come; none when it is too long."""
        self._size = 0
        """Bytes of it, or of what came since the last errors."""
        self._too_long = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return some whole lines, however many bytes they have.

        Raises:
            EndOfStream: there are no more.
        """
        while True:
            *ends, rest = (await self._stream.receive()).split(b"\n")
            lines = [self._end(piece) for piece in ends]
            if ready := b"".join([*lines, self._take(rest)]):
                return ready

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _take(self, piece: bytes) -> bytes:
        """Keep a piece of a line; return errors when that is too long now, and again for who asks meanwhile."""
        self._size += len(piece)
        if self._size > self._program.limit:
            is_news = not self._too_long or bool(self._program.open)
            self._pieces.clear()
            self._too_long = True
            self._size = 0
            return self._program.refuse() if is_news else b""
        if not self._too_long:
            self._pieces.append(piece)
        return b""

    def _end(self, piece: bytes) -> bytes:
        """Return the line that ends with `piece`, or errors."""
        errors = self._take(piece)
        line = errors if self._too_long else b"".join(self._pieces) + b"\n"
        if has_more_values(line, self._program.most_values):
            line = self._program.refuse(f"{self._program.most_values} values")
        self._pieces.clear()
        self._too_long = False
        self._size = 0
        return line

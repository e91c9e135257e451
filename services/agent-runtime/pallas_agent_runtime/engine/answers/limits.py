"""How large one message of an MCP server may be.

What the MCP SDK reads has no limit, but for an event of a stream: a server that answers a call with a gigabyte would
end the agent in its container. Here whoever asked gets an error instead, and the agent goes on.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import httpx2
import structlog
from fast_agent.mcp import client_gateway
from mcp.client import sse, streamable_http
from mcp.client.streamable_http import StreamableHTTPTransport
from mcp.shared._httpx_utils import create_mcp_http_client, sse_within_origin
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, RequestId, jsonrpc_message_adapter
from pydantic import ValidationError

from pallas_agent_runtime.engine.answers import program_lines
from pallas_agent_runtime.engine.patches import replaced
from pallas_contract.json_values import has_more_values

log = structlog.get_logger(__name__)

MOST_VALUES = 250_000
"""Arrays, objects and members of a message: some 350 bytes of memory each, whose text has one or two. No model reads so
many."""
_CALL = b'"method":"tools/call"'
"""As the SDK writes it. In a text of a message each quote has a backslash."""
_NOTED = "pallas.call"
Answered = Callable[[str, int], None]
"""Takes a server, and the HTTP status of its answer to a call of a tool."""
LEAST = 1 << 20
"""Bytes that a message may always have: who takes only short requests still wants the lists of its tools."""


class AnswerTooLarge(httpx2.StreamError):
    """A body with more bytes than are read."""


@contextmanager
def bounded(servers: Mapping[str, str], limit: int, answered: Answered = lambda server, status: None) -> Iterator[None]:
    """Have no message of an MCP server be longer than `limit` bytes meanwhile; `servers` maps URL -> name.

    It holds for a body, as it comes and unpacked, for an event of a stream, and for a line of a program. `LEAST` bytes
    are let through in any case. `answered` is told how these servers answer calls.
    """
    limit = max(limit, LEAST)
    write = StreamableHTTPTransport.post_writer

    def refusal(server: str, bound: str = "") -> str:
        bound = bound or in_words(limit)
        log.warning("answer_too_large", server=server, limit=bound)
        who = f"server '{server}'" if server else "an MCP server"  # not its URL, which may have a key in it
        return f"{who} answered with more than {bound}"

    def bind(client: httpx2.AsyncClient, url: str) -> None:
        name = servers.get(url, "")
        heard = functools.partial(answered, name) if name else None
        _bind(client, limit, functools.partial(refusal, name), heard)

    @functools.wraps(write)
    async def post_writer(transport: StreamableHTTPTransport, client: httpx2.AsyncClient, *args: Any) -> None:
        transport.max_sse_event_size = limit
        bind(client, transport.url)
        await write(transport, client, *args)

    def sse_client(url: str, *args: Any, **kwargs: Any) -> Any:
        def factory(**settings: Any) -> httpx2.AsyncClient:
            client = create_mcp_http_client(**settings)
            bind(client, url)
            return client

        return sse.sse_client(url, *args, **{**kwargs, "httpx_client_factory": factory})

    with (
        replaced(StreamableHTTPTransport, "post_writer", post_writer),
        replaced(client_gateway, "sse_client", sse_client),
        replaced(sse, "sse_within_origin", functools.partial(sse_within_origin, max_event_size=limit)),
        replaced(streamable_http, "EventSource", _Events),
        replaced(httpx2, "EventSource", _Events),
        program_lines.bounded(limit, MOST_VALUES, refusal),
    ):
        yield


class _Events(httpx2.EventSource):
    """The events of a response, none of which has more than `MOST_VALUES` values."""

    async def __aiter__(self) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """Yield the events.

        Raises:
            httpx2.SSEError: there is one that is too large. Of this the SDK makes the answer to a call.
        """
        async for event in super().__aiter__():
            if isinstance(self.response, _Bounded) and len(event.data) > MOST_VALUES:
                try:
                    self.response.check_values(event.data.encode())
                except AnswerTooLarge as failure:
                    raise httpx2.SSEError(str(failure)) from None
            yield event


class _Bounded(httpx2.Response):
    """A response that is read as far as `limit`, packed and unpacked; the SDK counts the events of one that streams."""

    limit: int
    refusal: Callable[..., str]
    _whole = False
    _packed = 0

    async def aread(self) -> bytes:
        """Return the body; of one that is too large as answer to a request an error of JSON-RPC in its place.

        Raises:
            AnswerTooLarge: it answers something else, which is none of the SDK's messages.
        """
        self._whole = True
        try:
            body = await super().aread()
            self.check_values(body)
            return body
        except AnswerTooLarge as failure:  # the SDK would make an answer of it too, and write a traceback to the log
            number = _request_id(self.request)
            if number is None:
                raise
            error = ErrorData(code=INTERNAL_ERROR, message=str(failure))
            return JSONRPCError(jsonrpc="2.0", id=number, error=error).model_dump_json(by_alias=True).encode()

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes]:
        unpacked = 0
        async with aclosing(super().aiter_bytes(chunk_size)) as pieces:
            async for piece in pieces:
                if self._whole:
                    unpacked += len(piece)
                    self._check(unpacked)
                else:
                    self._packed = 0
                yield piece

    async def aiter_raw(self, chunk_size: int | None = None) -> AsyncGenerator[bytes]:
        # Counted too, since what unpacks to nothing is kept: zlib collects all that comes behind the end.
        async with aclosing(super().aiter_raw(chunk_size)) as pieces:
            async for piece in pieces:
                self._packed += len(piece)
                self._check(self._packed)
                yield piece

    def check_values(self, message: bytes) -> None:
        """Look how many values a message has.

        Raises:
            AnswerTooLarge: more than `MOST_VALUES`.
        """
        if has_more_values(message, MOST_VALUES):
            raise AnswerTooLarge(self.refusal(f"{MOST_VALUES} values"))

    def _check(self, size: int) -> None:
        if size > self.limit:
            raise AnswerTooLarge(self.refusal())


def in_words(size: int) -> str:
    """Return a number of bytes as it is told."""
    return f"{size >> 20} MiB" if size % (1 << 20) == 0 else f"{size} bytes"


def hear(client: httpx2.AsyncClient, hook: Callable[[httpx2.Response], Awaitable[None]]) -> None:
    """Have each response of `client`, also one that leads elsewhere, go through `hook` before it is read."""
    hooks = client.event_hooks
    client.event_hooks = {**hooks, "response": [*hooks["response"], hook]}


def _is_call(request: httpx2.Request) -> bool:
    """Return whether a request calls a tool; one that follows a redirect has no content, but what this notes."""
    if _NOTED not in request.extensions:
        request.extensions[_NOTED] = _CALL in request.content
    return bool(request.extensions[_NOTED])


def _request_id(request: httpx2.Request) -> RequestId | None:
    try:
        message = jsonrpc_message_adapter.validate_json(request.content, by_name=False)
    except (ValidationError, httpx2.RequestNotRead):  # the latter of one that follows a redirect
        return None
    return message.id if isinstance(message, JSONRPCRequest) else None


def _bind(
    client: httpx2.AsyncClient, limit: int, refusal: Callable[..., str], heard: Callable[[int], None] | None
) -> None:
    """Have each response of `client` be bounded; `refusal` says what is wrong with one that is too large.

    `heard` takes the status of one to a call.
    """

    async def bind(response: httpx2.Response) -> None:
        if heard and _is_call(response.request):
            heard(response.status_code)
        # The client has no setting for the class of its responses, and with a transport of ours it would use no proxy.
        response.__class__ = _Bounded
        bounded: Any = response
        bounded.limit, bounded.refusal = limit, refusal

    hear(client, bind)

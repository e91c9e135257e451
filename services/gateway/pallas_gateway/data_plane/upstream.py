"""The one pooled HTTP client of the gateway; every failure of it is `Unreachable` or `Interrupted`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import structlog
from aiohttp.abc import AbstractResolver
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

from pallas_gateway.data_plane.headers import Pairs

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 5.0
"""Seconds in which an agent must take the connection."""
BUFFER = 64 << 10
"""Bytes of an answer that wait for a slow client, before the agent's connection is read no further."""
FAILURES = (aiohttp.ClientError, HttpProcessingError, OSError, TimeoutError, ValueError)
"""Exceptions of aiohttp; ValueError is that of a URL or header that it cannot send."""
_SPOILED = 10
"""Connections over which something came unasked that one call may meet, as when a proxy ends all that are idle."""
_OWN_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")
"""Headers that aiohttp would add."""
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that no header may have (RFC 9110, 5.5): they would begin another one."""


class Unreachable(Exception):
    """An agent that gave no answer; the text says why, without its address."""


class OutOfReach(OSError):
    """A host name whose addresses may not be connected to."""


class Interrupted(Exception):
    """An answer that broke off."""


def session(resolver: AbstractResolver | None = None) -> aiohttp.ClientSession:
    """Return the client: no cookies, no redirects followed by it, no proxies of the environment, bytes as they come.

    Connections are not bounded here: no more are open than callers have, whose connections are. With a `resolver` of
    its own each name is looked up by that, again for each connection.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, resolver=resolver, use_dns_cache=resolver is None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        skip_auto_headers=_OWN_HEADERS,
        read_bufsize=BUFFER,
    )


class Outgoing:
    """A body on its way to an agent. One that is sent in slices is let go once it is sent, and `sent` is called."""

    def __init__(self, data: bytes, sent: Callable[[], None]) -> None:
        self.size = len(data)
        self._data = data
        self._sent = sent

    def take(self) -> bytes | AsyncIterator[bytes]:
        """Return what is to be sent, once: a large body in slices."""
        data = self.whole()
        return data if self.size <= BUFFER else self._slices(data)

    def whole(self) -> bytes:
        """Return what is to be sent, once: of a body that is not large."""
        data = self._data
        self._data = b""
        return data

    async def _slices(self, data: bytes) -> AsyncIterator[bytes]:
        # in one piece it would be copied whole in one turn of the event loop
        view = memoryview(data)
        for start in range(0, self.size, BUFFER):
            yield bytes(view[start : start + BUFFER])
        del data, view
        self._sent()


class Reply:
    """The answer to a POST of a `Pool`: as much of aiohttp's own as a gateway passes on."""

    __slots__ = ("_connection", "content", "raw_headers", "status")

    def __init__(
        self, connection: aiohttp.connector.Connection, message: RawResponseMessage, content: aiohttp.StreamReader
    ) -> None:
        self._connection = connection
        self.status = message.code
        self.raw_headers = message.raw_headers
        self.content = content
        content.on_eof(connection.release)

    async def read(self) -> bytes:
        """Return the body, which most often came with its head."""
        return self.content.read_nowait() if self.content.is_eof() else await self.content.read()

    def close(self) -> None:
        """Close the connection, where the answer was not read to its end."""
        self._connection.close()


class Pool:
    """The way to members of the fleet, by the connections of `client`.

    A call is written in one piece and its answer parsed, by aiohttp's connections and parser, without what its
    sessions do for each request: cookies, redirects, proxies, headers of their own. That would be a sixth of a call.
    """

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client
        self._targets: dict[str, _Target] = {}
        self._is_known = True

    async def ask(
        self, method: str, url: str, *, headers: Pairs, body: Outgoing | None
    ) -> Reply | aiohttp.ClientResponse:
        """Return the answer once its head is there; who asks closes it. `url` is one of a fleet file.

        Raises:
            Unreachable: there was no answer.
        """
        if method != "POST" or body is None or body.size > BUFFER or not self._is_known:
            return await ask(self._client, method, url, headers=headers, body=body)
        try:
            try:
                target = self._target(url)
                connection = await self._connected(target)
            except (AttributeError, TypeError) as error:  # an aiohttp that is not used so
                self._is_known = False
                log.warning("calls take more time with this aiohttp", version=aiohttp.__version__, reason=str(error))
                return await ask(self._client, method, url, headers=headers, body=body)
            try:
                return await _answered(connection, target.written(headers, body.whole()))
            except BaseException:
                connection.close()
                raise
        except FAILURES as error:
            raise Unreachable(_words(error)) from None

    def _target(self, url: str) -> _Target:
        if (target := self._targets.get(url)) is None:
            target = self._targets[url] = _Target(self._client, url)
        return target

    async def _connected(self, target: _Target) -> aiohttp.connector.Connection:
        """Return a connection that is ready for an answer, and over which nothing has come that nobody asked for."""
        connector = self._client.connector
        if connector is None:
            raise aiohttp.ClientConnectionError
        for _ in range(_SPOILED):
            connection = await connector.connect(target.request, [], self._client.timeout)
            try:
                if not _is_spoiled(connection):
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()
        raise ValueError("it answers before it is asked")


class _Target:
    """A URL, with what of a request to it is always the same."""

    __slots__ = ("_head", "request")

    def __init__(self, client: aiohttp.ClientSession, url: str) -> None:
        # what a connector asks where to connect to; it is never sent
        self.request = aiohttp.ClientRequest(
            "POST", URL(url), loop=asyncio.get_running_loop(), session=client, skip_auto_headers=_OWN_HEADERS
        )
        host = self.request.headers["host"]
        self._head = f"POST {self.request.url.raw_path_qs} HTTP/1.1\r\nhost: {host}\r\n".encode()

    def written(self, headers: Pairs, body: bytes) -> bytes:
        """Return a request with its body.

        Raises:
            ValueError: a header cannot be sent.
        """
        if _CONTROL.search(b"".join([value for _, value in headers])):
            raise ValueError("a header with a control character")
        lines = [b"%b: %b\r\n" % pair for pair in headers]
        return b"".join([self._head, *lines, b"content-length: %d\r\n\r\n" % len(body), body])


def _is_spoiled(connection: aiohttp.connector.Connection) -> bool:
    """Return whether something has come over it that nobody has asked for: the next caller would take it for his.

    Else it is made ready for an answer.
    """
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ServerDisconnectedError
    if protocol.should_close:
        return True
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=BUFFER)
    return False


async def _answered(connection: aiohttp.connector.Connection, request: bytes) -> Reply:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None:
        raise aiohttp.ServerDisconnectedError
    transport.write(request)
    while True:
        message, content = await protocol.read()
        if message.code >= 200:
            return Reply(connection, message, content)
        if message.code == 101:
            raise ValueError("it speaks another protocol, which nobody has asked for")
        if message.code < 100:
            raise ValueError("a status that there is not")


async def ask(
    client: aiohttp.ClientSession, method: str, url: str, *, headers: Pairs, body: Outgoing | None
) -> aiohttp.ClientResponse:
    """Return the answer once its head is there; who asks closes it.

    No POST is sent twice: an agent may have done the work before its connection broke.

    Raises:
        Unreachable: there was no answer.
    """
    passed = [(name.decode("latin-1"), _text(value)) for name, value in headers]
    if body and body.size > BUFFER:
        passed.append(("content-length", str(body.size)))
    try:
        return await client.request(
            method, url, headers=passed, data=body.take() if body else None, allow_redirects=False
        )
    except FAILURES as error:
        raise Unreachable(_words(error)) from None


@asynccontextmanager
async def exchange(
    client: aiohttp.ClientSession, method: str, url: str, *, headers: Pairs, body: Outgoing | None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Yield what `ask` returns; the connection is closed where the answer is not read to its end.

    Raises:
        Unreachable: there was no answer.
    """
    response = await ask(client, method, url, headers=headers, body=body)
    try:
        yield response
    finally:
        response.close()


async def pieces(response: Reply | aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body as it comes.

    Raises:
        Interrupted: it broke off.
    """
    try:
        async for piece in response.content.iter_any():
            yield piece
    except FAILURES as error:
        raise Interrupted(_words(error)) from None


async def whole(response: Reply | aiohttp.ClientResponse) -> bytes:
    """Return the body.

    Raises:
        Interrupted: it broke off.
    """
    try:
        return await response.read()
    except FAILURES as error:
        raise Interrupted(_words(error)) from None


def _text(value: bytes) -> str:
    """Return a header as text that aiohttp, which writes UTF-8, makes the same bytes of, where they are UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"did not take the connection in {CONNECT_SECONDS:g} s"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        if isinstance(error.os_error, OutOfReach):
            return "is at no address that may be asked"
        return "has a host name that is not known"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "refuses connections"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | OSError):
        return "closed the connection"
    return "answered no HTTP"

"""The one pooled HTTP client of the gateway; every failure of it is `Unreachable` or `Interrupted`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
from aiohttp.abc import AbstractResolver

CONNECT_SECONDS = 5.0
"""Seconds in which an agent must take the connection."""
BUFFER = 64 << 10
"""Bytes of an answer that wait for a slow client, before the agent's connection is read no further."""
FAILURES = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
"""Exceptions of aiohttp; ValueError is that of a URL or header that it cannot send."""


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
        skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
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
        data = self._data
        self._data = b""
        return data if self.size <= BUFFER else self._slices(data)

    async def _slices(self, data: bytes) -> AsyncIterator[bytes]:
        # in one piece it would be copied whole in one turn of the event loop
        view = memoryview(data)
        for start in range(0, self.size, BUFFER):
            yield bytes(view[start : start + BUFFER])
        del data, view
        self._sent()


async def ask(
    client: aiohttp.ClientSession, method: str, url: str, *, headers: list[tuple[str, str]], body: Outgoing | None
) -> aiohttp.ClientResponse:
    """Return the answer once its head is there; who asks closes it.

    No POST is sent twice: an agent may have done the work before its connection broke.

    Raises:
        Unreachable: there was no answer.
    """
    sized = [*headers, ("content-length", str(body.size))] if body and body.size > BUFFER else headers
    try:
        return await client.request(
            method, url, headers=sized, data=body.take() if body else None, allow_redirects=False
        )
    except FAILURES as error:
        raise Unreachable(_words(error)) from None


@asynccontextmanager
async def exchange(
    client: aiohttp.ClientSession, method: str, url: str, *, headers: list[tuple[str, str]], body: Outgoing | None
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


async def pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body as it comes.

    Raises:
        Interrupted: it broke off.
    """
    try:
        async for piece in response.content.iter_any():
            yield piece
    except FAILURES as error:
        raise Interrupted(_words(error)) from None


async def whole(response: aiohttp.ClientResponse) -> bytes:
    """Return the body.

    Raises:
        Interrupted: it broke off.
    """
    try:
        return await response.read()
    except FAILURES as error:
        raise Interrupted(_words(error)) from None


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

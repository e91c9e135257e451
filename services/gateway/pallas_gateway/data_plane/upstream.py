"""The one pooled HTTP client of the gateway; every failure of it is `Unreachable` or `Interrupted`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

CONNECT_SECONDS = 5.0
"""Seconds in which an agent must take the connection; how long it may work is for its caller, who can hang up."""
BUFFER = 64 << 10
"""Bytes of an answer that wait for a slow client, before the agent's connection is read no further."""
FAILURES = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
"""Exceptions of aiohttp; ValueError is that of a URL or header that it cannot send."""


class Unreachable(Exception):
    """An agent that gave no answer; the text says why, without its address."""


class Interrupted(Exception):
    """An answer that broke off."""


def session() -> aiohttp.ClientSession:
    """Return the client: no cookies, no redirects followed by it, no proxies of the environment, bytes as they come.

    Connections are not bounded here: no more are open than callers have, whose connections are.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
        read_bufsize=BUFFER,
    )


@asynccontextmanager
async def exchange(
    client: aiohttp.ClientSession, method: str, url: str, *, headers: list[tuple[str, str]], body: bytes | None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Yield the answer once its head is there; the connection is closed where the answer is not read to its end.

    No POST is sent twice: an agent may have done the work before its connection broke.

    Raises:
        Unreachable: there was no answer.
    """
    large = body is not None and len(body) > BUFFER
    sized = [*headers, ("content-length", str(len(body)))] if body is not None and large else headers
    data = _slices(body) if body is not None and large else body
    try:
        response = await client.request(method, url, headers=sized, data=data, allow_redirects=False)
    except FAILURES as error:
        raise Unreachable(_words(error)) from None
    try:
        yield response
    finally:
        response.close()


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    # in one piece it would be copied whole in one turn of the event loop
    view = memoryview(body)
    for start in range(0, len(body), BUFFER):
        yield bytes(view[start : start + BUFFER])


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
        return "has a host name that is not known"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "refuses connections"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | OSError):
        return "closed the connection"
    return "answered no HTTP"

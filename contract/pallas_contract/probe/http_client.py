"""Bounded HTTP/1.1 exchanges: no redirects unasked, no compression, a capped body, the deadline of the caller.

Small on purpose: a container healthcheck starts it every few seconds: it imports only the standard library and
httptools, whose parser (llhttp) is also what makes probes cheap (benchmarks/registry_probes.py).
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import socket
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, urljoin, urlsplit

from pallas_contract.documents.reason import NOT_FOUND, UNRESOLVED, Code, Reason
from pallas_contract.probe.http_connection import BROKEN, LIMIT, HttpConnection, HttpResponse, IsComplete, Unreachable

__all__ = ["LIMIT", "Client", "Closed", "HttpResponse", "IsComplete", "Unreachable", "request"]

_FIELD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00-\x08\x0a-\x1f\x7f]*")
_TARGET = re.compile(r"[A-Z]+ [\x21-\x7e]+")


class Closed(Exception):
    """The connection that was to be used again is no longer there; nothing was answered on it."""


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    address: str | None = None,
    is_complete: IsComplete | None = None,
    limit: int = LIMIT,
) -> HttpResponse:
    """Send one request on a connection of its own; raises what `Client` and `Client.request` raise."""
    async with Client(url, address, limit=limit) as client:
        return await client.request(method, headers=headers, body=body, is_complete=is_complete, last=True)


class Client:
    """Requests to one URL, on one connection for as long as the server keeps it: a context manager that drops it."""

    def __init__(self, url: str, address: str | None = None, *, limit: int = LIMIT) -> None:
        """Take the URL apart; `address` overrides the host to connect to, and Host stays that of `url`.

        `limit` is the most bytes of a body that are read; a larger one is `Unreachable`.

        Raises:
            ValueError: `url` is not http(s) with a host.
        """
        self._parts, self._host, self._port = _split(url)
        self._address = address or self._host
        self._protocol = functools.partial(HttpConnection, limit)
        self._connection: HttpConnection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    @property
    def kept(self) -> bool:
        """True while the server has left the connection of the last request open."""
        return self._connection is not None and self._connection.usable

    def close(self) -> None:
        """Drop the connection, if there is one; another request opens another."""
        if self._connection is not None:
            self._connection.abort()  # a clean shutdown would wait for a peer that may be frozen
            self._connection = None

    def redirect(self, location: str) -> bool:
        """Have the requests that follow go to another path of the same origin, and return True.

        Anything else changes nothing, and is False: the headers of a request may have a token for this origin.
        """
        try:
            parts, host, port = _split(urljoin(self._parts.geturl(), location))
        except ValueError:
            return False
        if (parts.scheme, host, port) != (self._parts.scheme, self._host, self._port):
            return False
        self._parts = parts
        return True

    async def request(
        self,
        method: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        is_complete: IsComplete | None = None,
        last: bool = False,
        again: bool = False,
    ) -> HttpResponse:
        """Send one request and read its answer; `last` tells the server that no other will follow.

        `again` sends it on the connection of the request before, and on no other: who answers is who answered then.
        Not for HEAD, whose answers cannot be told from those of GET by their headers.

        Raises:
            Unreachable: nothing usable came back.
            Closed: with `again`, there is no such connection any more.
            ValueError: a header cannot be sent.
            TimeoutError: only from a deadline the caller set around this call.
        """
        request = _encode(method, self._parts, headers=headers or {}, body=body, last=last)
        try:
            return await self._exchange(request, is_complete, again=again)
        except OSError as error:
            raise unreachable(error) from None

    async def _exchange(self, request: bytes, is_complete: IsComplete | None, *, again: bool) -> HttpResponse:
        # Taken out until its answer is read: a cancelled exchange must not leave half an answer to the next one.
        connection = self._connection
        self._connection = None
        if connection is not None and connection.usable:
            response = await self._send(connection, request, is_complete)
            if response is not None:
                return response
        if again:
            raise Closed
        # Sent again: a server may close an idle connection at any time (RFC 9112, 9.3.1); a probe changes nothing.
        response = await self._send(await self._connect(), request, is_complete)
        if response is None:
            raise Unreachable(BROKEN)
        return response

    async def _send(
        self, connection: HttpConnection, request: bytes, is_complete: IsComplete | None
    ) -> HttpResponse | None:
        """Return None when the server closed the connection unasked, as it may do with one that was idle for long."""
        try:
            response = await connection.exchange(request, is_complete)
        except BaseException:
            connection.abort()
            raise
        if connection.usable:
            self._connection = connection
        else:
            connection.abort()
        return response

    async def _connect(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        if self._parts.scheme == "http":
            return (await loop.create_connection(self._protocol, self._address, self._port))[1]
        _, connection = await loop.create_connection(
            self._protocol,
            self._address,
            self._port,
            ssl=_trust(),
            server_hostname=self._parts.hostname,  # the certificate is for the name, whatever the address
        )
        return connection


def unreachable(error: OSError) -> Unreachable:
    """Return what an error of the network, or of a name's look-up, means for whoever asks."""
    if isinstance(error, socket.gaierror):
        # Two codes for one thing: no such name, and a name without an address.
        missing = error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
        return Unreachable(NOT_FOUND if missing else UNRESOLVED)
    if isinstance(error, ConnectionRefusedError):
        return Unreachable(Reason("ConnectionRefused", "connection refused"))
    if isinstance(error, ConnectionError):
        return Unreachable(Reason("ConnectionReset", "connection reset"))
    code: Code = "TlsError" if isinstance(error, ssl.SSLError) else "ConnectionFailed"
    return Unreachable(Reason(code, (error.strerror or type(error).__name__).lower()))


@functools.lru_cache(maxsize=4096)
def _split(url: str) -> tuple[SplitResult, str, int]:
    """Return the parts, host and port of a URL; remembered, since the same ones are probed again and again."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError(f"not an http(s) URL: {parts.scheme}://{parts.hostname or ''}")  # the rest may be secret
    try:
        port = parts.port
    except ValueError:
        raise ValueError("not an http(s) URL: its port is no number up to 65535") from None
    return parts, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _trust() -> ssl.SSLContext:
    """Return the trust of this machine as OpenSSL finds it (`SSL_CERT_FILE`), also once it is mounted or renewed."""
    paths = ssl.get_default_verify_paths()
    return _context(tuple(_stamp(path) for path in (paths.cafile, paths.capath) if path))


@functools.lru_cache(maxsize=1)
def _context(stamps: tuple[tuple[int, ...], ...]) -> ssl.SSLContext:
    """Return a context, the same one as long as the files are: to read them takes as long as ten probes."""
    return ssl.create_default_context()


def _stamp(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _encode(method: str, parts: SplitResult, *, headers: Mapping[str, str], body: bytes, last: bool) -> bytes:
    start = f"{method} {parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    fields = {"host": parts.netloc, "accept-encoding": "identity"}
    if last:
        fields["connection"] = "close"
    if body or method in ("POST", "PUT"):
        fields["content-length"] = str(len(body))
    fields |= {key.lower(): headers[key] for key in headers}
    # A line break in a header would begin another request. What is unfit is told without its value, often a token.
    if unfit := [name for name, value in fields.items() if not _FIELD.fullmatch(f"{name}: {value}")]:
        name = unfit[0] if _FIELD.fullmatch(f"{unfit[0]}: ") else "with that name"
        raise ValueError(f"not an HTTP request: the header {name} cannot be sent; does its value end in a line break?")
    if not _TARGET.fullmatch(start):
        raise ValueError("not an HTTP request: its URL has a space or a character that is not ASCII")
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join((f"{start} HTTP/1.1", *lines, "", "")).encode("latin-1") + body

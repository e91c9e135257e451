"""Bounded HTTP/1.1 exchanges: no redirects, no compression, a capped body, the deadline of the caller.

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
from urllib.parse import SplitResult, urlsplit

from pallas_contract.documents.reason import NOT_FOUND, UNRESOLVED, Code, Reason
from pallas_contract.probe.http_connection import BROKEN, LIMIT, Enough, Reply, Unreachable, Wire

__all__ = ["LIMIT", "Client", "Enough", "Reply", "Unreachable", "request"]

_FIELD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00-\x08\x0a-\x1f\x7f]*")
_TARGET = re.compile(r"[A-Z]+ [\x21-\x7e]+")


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    address: str | None = None,
    enough: Enough | None = None,
) -> Reply:
    """One request on a connection of its own; what is raised is what `Client` and `Client.request` raise."""
    async with Client(url, address) as client:
        return await client.request(method, headers=headers, body=body, enough=enough, last=True)


class Client:
    """Requests to one URL, on one connection for as long as the server keeps it: a context manager that drops it."""

    def __init__(self, url: str, address: str | None = None) -> None:
        """`address` overrides where to connect; Host stays that of `url`.

        Raises:
            ValueError: `url` is not http(s) with a host.
        """
        self._parts, host, self._port = _read(url)
        self._address = address or host
        self._wire: Wire | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection, if there is one; another request opens another."""
        if self._wire is not None:
            self._wire.abort()  # a clean shutdown would wait for a peer that may be frozen
            self._wire = None

    async def request(
        self,
        method: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        enough: Enough | None = None,
        last: bool = False,
    ) -> Reply:
        """Send one request and read its answer; `last` tells the server that no other will follow.

        Not for HEAD, whose answers cannot be told from those of GET by their headers.

        Raises:
            Unreachable: nothing usable came back.
            ValueError: a header cannot be sent.
            TimeoutError: only from a deadline the caller set around this call.
        """
        sent = _request(method, self._parts, headers or {}, body, last)
        try:
            return await self._exchange(sent, enough)
        except socket.gaierror as error:
            missing = error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            raise Unreachable(NOT_FOUND if missing else UNRESOLVED) from None
        except ConnectionRefusedError:
            raise Unreachable(Reason("ConnectionRefused", "connection refused")) from None
        except ConnectionError:
            raise Unreachable(Reason("ConnectionReset", "connection reset")) from None
        except OSError as error:
            code: Code = "TlsError" if isinstance(error, ssl.SSLError) else "ConnectionFailed"
            raise Unreachable(Reason(code, (error.strerror or type(error).__name__).lower())) from None

    async def _exchange(self, sent: bytes, enough: Enough | None) -> Reply:
        kept, self._wire = self._wire, None
        if kept is not None and kept.usable:
            reply = await self._over(kept, sent, enough)
            if reply is not None:
                return reply
        fresh = await self._over(await self._connect(), sent, enough)
        if fresh is None:
            raise Unreachable(BROKEN)
        return fresh

    async def _over(self, wire: Wire, sent: bytes, enough: Enough | None) -> Reply | None:
        """None when the server closed the connection without a word, as it may one that it has kept long enough."""
        try:
            reply = await wire.exchange(sent, enough)
        except BaseException:
            wire.abort()
            raise
        if wire.usable:
            self._wire = wire
        else:
            wire.abort()
        return reply

    async def _connect(self) -> Wire:
        loop = asyncio.get_running_loop()
        if self._parts.scheme == "http":
            return (await loop.create_connection(Wire, self._address, self._port))[1]
        name = self._parts.hostname
        return (await loop.create_connection(Wire, self._address, self._port, ssl=_trust(), server_hostname=name))[1]


@functools.lru_cache(maxsize=4096)
def _read(url: str) -> tuple[SplitResult, str, int]:
    """The parts, host and port of a URL; remembered, since the same ones are probed again and again."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError(f"not an http(s) URL: {url}")
    return parts, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _trust() -> ssl.SSLContext:
    """Whom the machine trusts, as OpenSSL finds it (`SSL_CERT_FILE`), also once it is mounted or renewed."""
    found = ssl.get_default_verify_paths()
    return _trusted(tuple(_stamp(path) for path in (found.cafile, found.capath) if path))


@functools.lru_cache(maxsize=1)
def _trusted(stamps: tuple[tuple[int, ...], ...]) -> ssl.SSLContext:
    """Kept for as long as the files are the same ones: to read them takes as long as ten probes."""
    return ssl.create_default_context()


def _stamp(path: str) -> tuple[int, ...]:
    there = os.stat(path)
    return there.st_ino, there.st_size, there.st_mtime_ns


def _request(method: str, parts: SplitResult, headers: Mapping[str, str], body: bytes, last: bool) -> bytes:
    start = f"{method} {parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    fields = {"host": parts.netloc, "accept-encoding": "identity"}
    if last:
        fields["connection"] = "close"
    if body or method in ("POST", "PUT"):
        fields["content-length"] = str(len(body))
    lines = [f"{name}: {value}" for name, value in (fields | {key.lower(): headers[key] for key in headers}).items()]
    wrong = [line for line in lines if not _FIELD.fullmatch(line)]
    if wrong or not _TARGET.fullmatch(start):
        raise ValueError(f"not an HTTP request: {(wrong or [start])[0]!r}")
    return "\r\n".join((f"{start} HTTP/1.1", *lines, "", "")).encode("latin-1") + body

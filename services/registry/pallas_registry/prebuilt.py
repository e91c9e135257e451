"""Documents that are bytes before anybody asks, with ETag, 304, CORS and HEAD: the request path does no work."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

_Headers = list[tuple[bytes, bytes]]
_CORS: _Headers = [(b"access-control-allow-origin", b"*")]
_PREFLIGHT: _Headers = [
    *_CORS,
    (b"access-control-allow-methods", b"GET, HEAD, OPTIONS"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, If-None-Match"),
    (b"access-control-max-age", b"86400"),
]
_ALLOW: _Headers = [(b"allow", b"GET, HEAD, OPTIONS"), (b"content-length", b"0")]


class Document:
    """A body with the headers of its answers, made once."""

    __slots__ = ("body", "etag", "headers", "unchanged")

    def __init__(self, body: bytes, content_type: str = "application/json") -> None:
        self.body = body
        self.etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        self.unchanged: _Headers = [
            *_CORS,
            (b"access-control-expose-headers", b"ETag"),
            (b"cache-control", b"no-cache"),
            (b"etag", self.etag.encode()),
        ]
        self.headers: _Headers = [
            *self.unchanged,
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
        ]


class Prebuilt:
    """ASGI middleware that answers the paths of `documents` and hands everything else on.

    Before routing on purpose: a route costs half of the requests per second (research/perf-reliability.md, 1c).
    """

    def __init__(self, app: ASGIApp, documents: Mapping[str, Callable[[], Document]]) -> None:
        self._app, self._documents = app, documents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        current = self._documents.get(scope["path"]) if scope["type"] == "http" else None
        if current is None:
            await self._app(scope, receive, send)
            return
        status, headers, body = _answer(current(), scope)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _answer(document: Document, scope: Scope) -> tuple[int, _Headers, bytes]:
    method = scope["method"]
    if method == "OPTIONS":
        return 204, _PREFLIGHT, b""
    if method not in ("GET", "HEAD"):
        return 405, _ALLOW, b""
    if matches(
        document.etag, [value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"]
    ):
        return 304, document.unchanged, b""
    return 200, document.headers, document.body if method == "GET" else b""


def matches(etag: str, fields: list[str]) -> bool:
    """Whether the If-None-Match header `fields` name `etag` (RFC 9110 section 13.1.2: weak comparison)."""
    tags = [tag.strip().removeprefix("W/") for field in fields for tag in field.split(",")]
    return etag in tags or "*" in tags

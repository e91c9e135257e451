"""Documents that are bytes before anybody asks, with ETag, 304, CORS and HEAD: the request path does no work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

_Headers = list[tuple[bytes, bytes]]
_CORS: _Headers = [(b"access-control-allow-origin", b"*")]
_PREFLIGHT: _Headers = [
    *_CORS,
    (b"access-control-allow-methods", b"GET, HEAD, OPTIONS"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, If-None-Match"),
    (b"access-control-max-age", b"86400"),
]
_READ = ("GET", "HEAD", "OPTIONS")
_ALLOW = (b"allow", b"GET, HEAD, OPTIONS")


class Document:
    """A body with the headers of its answers, made once. One with another status than 200 is the answer as it is.

    `unchanged` are the headers of a 304; `head` and `full` those of a 304 and of a whole answer as they are sent.
    """

    __slots__ = ("body", "etag", "full", "head", "headers", "status", "unchanged")

    def __init__(
        self, body: bytes, content_type: str = "application/json", *, status: int = 200, cache: str = "no-cache"
    ) -> None:
        self.body = body
        self.status = status
        self.etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        self.unchanged: _Headers = [
            *_CORS,
            (b"access-control-expose-headers", b"ETag"),
            (b"cache-control", cache.encode()),
            (b"etag", self.etag.encode()),
        ]
        self.headers: _Headers = [
            *(self.unchanged if status == 200 else [*_CORS, (b"cache-control", b"no-store")]),
            (b"content-type", content_type.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        self.head = _sent(self.unchanged)
        self.full = _sent(self.headers)


def _sent(headers: _Headers) -> bytes:
    return b"".join(b"%b: %b\r\n" % field for field in headers)


def refusal(status: int, message: str) -> Document:
    """Return an error in the shape of the registry API: `{"error": message}`."""
    return Document(json.dumps({"error": message}, ensure_ascii=False).encode(), status=status)


_READ_ONLY = refusal(405, "This can only be read")
_READ_ONLY.headers.append(_ALLOW)

Find = Callable[[str, str, bytes], Document | None]
"""The document for (method, decoded path, query string); None when the path is none of ours."""


class Prebuilt:
    """ASGI middleware that answers what `find` knows and hands everything else on.

    Before routing on purpose: a route costs half of the requests per second.
    """

    def __init__(self, app: ASGIApp, find: Find) -> None:
        self._app = app
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        current = None
        if scope["type"] == "http":
            current = self._find(scope["method"], scope["path"], scope.get("query_string", b""))
        if current is None:
            await self._app(scope, receive, send)
            return
        status, headers, body = _answer(current, scope)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _answer(document: Document, scope: Scope) -> tuple[int, _Headers, bytes]:
    method = scope["method"]
    if method == "OPTIONS":
        return 204, _PREFLIGHT, b""
    if document.status == 200 and method not in _READ:
        document = _READ_ONLY
    # a header may come several times, and each time name several tags
    tags = [value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"]
    if tags and document.status == 200 and matches(document.etag, tags):
        return 304, document.unchanged, b""
    return document.status, document.headers, b"" if method == "HEAD" else document.body


def matches(etag: str, fields: list[str]) -> bool:
    """Return True when the If-None-Match header `fields` name `etag` (RFC 9110 section 13.1.2: weak comparison)."""
    tags = [tag.strip().removeprefix("W/") for field in fields for tag in field.split(",")]
    return etag in tags or "*" in tags

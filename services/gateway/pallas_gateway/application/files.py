"""A web application of the project, as static files: `gateway.app` of agents.yaml, at /app/.

It is a client like any other, in front of the gate as the console's page is: what it may do is decided where it calls.
Its address is the gateway's own, so that no rule for other origins is needed, and there is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

PATH = "/app"
MOST_FILES = 200
MOST_BYTES = 8 << 20
"""Of all files together."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_HEADERS = {
    # nothing from elsewhere, no script and no style in the page itself: what a model writes stays text
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}

log = structlog.get_logger(__name__)


def routes(folder: Path, secrets: Collection[Path] = ()) -> list[Route]:
    """Return the routes of the files below `folder` but `secrets`, read now; what cannot be served is logged."""
    pages = [_page(path, body) for path, body in _files(folder, frozenset(path.resolve() for path in secrets))]
    return [Route(PATH, _to_folder), *pages]


async def _to_folder(request: Request) -> Response:
    """Lead to the folder, by a path: behind a proxy that speaks TLS a whole URL would be another one."""
    return RedirectResponse(f"{PATH.rpartition('/')[2]}/", 307, headers=_HEADERS)


def _page(path: str, body: bytes) -> Route:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**_HEADERS, "etag": tag, "content-type": _TYPES[PurePosixPath(path).suffix.lower()]}

    async def serve(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={**_HEADERS, "etag": tag})
        return Response(body, headers=headers)

    return Route(f"{PATH}/{'' if path == 'index.html' else path}", serve)


def _files(folder: Path, secrets: frozenset[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield paths from `folder`, sorted, with what is in the files; nothing that is hidden or lies elsewhere."""
    left, room, top = MOST_FILES, MOST_BYTES, folder.resolve()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if any(part.startswith(".") for part in name.split("/")):
            continue
        reason = "" if path.suffix.lower() in _TYPES else "no type that is served"
        if not path.resolve().is_relative_to(top):
            reason = "a link that leads elsewhere"
        elif path.resolve() in secrets:
            reason = "a secret"
        elif "{" in name:  # a pattern to Starlette, of other paths
            reason = "a brace in its name"
        elif not left or path.stat().st_size > room:
            reason = f"more than {MOST_FILES} files, or {MOST_BYTES >> 20} MiB together"
        if reason:
            log.warning("not_served", file=name, reason=reason)
            continue
        body = path.read_bytes()
        left, room = left - 1, room - len(body)
        yield name, body

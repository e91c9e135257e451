"""The registry's HTTP side: ready-made documents first, then the few things that are made when asked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from pallas_contract.documents import server_json
from pallas_registry.http import events, openapi
from pallas_registry.http.events import Streams
from pallas_registry.http.metrics import Metrics
from pallas_registry.mcp import jsonrpc
from pallas_registry.mcp import server as mcp_server
from pallas_registry.prebuilt.documents import Document, Find, Prebuilt
from pallas_registry.probing.recheck import Busy
from pallas_registry.state.status import Condition
from pallas_registry.status_page import page as status_page_page

_log = structlog.get_logger()

Waiting = Callable[[], str]
"""Why the registry is not ready yet; empty when it is."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The parts that answer requests; asked at each of them. `recheck` raises KeyError or recheck.Busy.

    `hosts` is what the registry is known by (mcp.server.foreign).
    """

    find: Find
    metrics: Metrics
    waiting: Waiting
    page: Callable[[bytes], bytes]
    streams: Streams
    recheck: Callable[[str], Awaitable[Condition]]
    mcp: Callable[[Mapping[str, str], bytes], Awaitable[jsonrpc.Response]]
    hosts: Callable[[], Collection[str]]
    uptime: Callable[[], Mapping[str, Any]]


def create_app(backend: Backend) -> ASGIApp:
    """Return the ASGI application: ready-made documents in front of all else, also of Starlette's own middleware."""
    routes = [*_probes(backend), *_people(backend), *_agents(backend), _uptime(backend)]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    # a redirect goes to whatever Host the request names
    app.router.redirect_slashes = False

    @cache
    def description() -> Document:
        """Make it when first asked for: most registries never are."""
        return Document(json.dumps(openapi.document(), ensure_ascii=False).encode())

    def find(method: str, path: str, query: bytes) -> Document | None:
        return description() if path == openapi.PATH else backend.find(method, path, query)

    return Prebuilt(app, find)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    headers = {"allow": _allowed(request)} if error.status_code == 405 else error.headers
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=headers)


def _allowed(request: Request) -> str:
    """Return the methods of all routes that have the path: Starlette names those of the first one only."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    fitting = [route.methods or () for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for methods in fitting for method in methods}))


def _probes(backend: Backend) -> list[Route]:
    async def livez(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> Response:
        reason = backend.waiting()
        if reason:
            return JSONResponse({"status": "starting", "message": reason}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def expose(request: Request) -> Response:
        body, content_type = await backend.metrics.scrape(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    return [Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", expose)]


def _people(backend: Backend) -> list[Route]:
    async def page(request: Request) -> Response:
        return Response(
            backend.page(request.scope["query_string"]), media_type="text/html", headers=status_page_page.HEADERS
        )

    async def follow(request: Request) -> Response:
        address = request.client.host if request.client else ""
        if not backend.streams.admits(address):
            raise HTTPException(503, "too many streams are open", {"retry-after": "5"})
        stream = backend.streams.follow(request.headers.get("last-event-id", ""), address)
        return StreamingResponse(stream, media_type="text/event-stream", headers=events.HEADERS)

    followed = Route(events.PATH, follow)
    followed.methods = {"GET"}  # a stream has no end that a HEAD could wait for
    return [Route("/", page), followed, Route("/agents/{agent}/recheck", _recheck(backend), methods=["POST"])]


def _recheck(backend: Backend) -> Callable[[Request], Awaitable[Response]]:
    async def recheck(request: Request) -> Response:
        # a form of another site could post here without asking: browsers say so in this header
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise HTTPException(403, "rechecks are not for other sites")
        if "text/event-stream" in request.headers.get("accept", ""):  # an agent that registered with this as its URL
            raise HTTPException(403, "rechecks are not for MCP")
        agent = request.path_params["agent"]
        try:
            condition = await backend.recheck(agent)
        except KeyError:
            raise HTTPException(404, "there is no such agent") from None
        except Busy as busy:
            raise HTTPException(429, str(busy), {"retry-after": str(busy.seconds)}) from None
        if "text/html" in request.headers.get("accept", ""):  # a form, without JavaScript
            return Response(status_code=303, headers={"location": f"../../?{urlencode({'focus': agent})}#focus"})
        return JSONResponse({"agent": agent, **server_json.state_fields(condition.state, condition.reason)})

    return recheck


def _uptime(backend: Backend) -> Route:
    async def uptime(request: Request) -> Response:
        return JSONResponse(backend.uptime(), headers={"cache-control": "no-store", "access-control-allow-origin": "*"})

    return Route("/uptime", uptime)


def _agents(backend: Backend) -> list[Route]:
    async def mcp(request: Request) -> Response:
        if mcp_server.foreign(request.headers.get("origin"), backend.hosts()):
            raise HTTPException(403, "not for pages of other sites")
        # read in pieces, because Content-Length may be missing or wrong
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > mcp_server.LIMIT:
                    raise HTTPException(413, f"a request has at most {mcp_server.LIMIT // 1024} KiB")
        except ClientDisconnect:  # not worth a traceback, which would push everything else out of a rotated log
            _log.info("upload aborted", bytes=len(body))
            return Response(status_code=400)
        answer = await backend.mcp(request.headers, bytes(body))
        headers = dict(answer.headers)
        if answer.message is None:
            return Response(status_code=answer.status, headers=headers)
        return JSONResponse(answer.message, status_code=answer.status, headers=headers)

    return [Route(mcp_server.PATH, mcp, methods=["POST"])]

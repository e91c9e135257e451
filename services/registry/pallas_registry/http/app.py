"""The registry's HTTP side: ready-made documents first, then the few things that are made when asked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any
from urllib.parse import urlencode

import structlog
from fastapi import FastAPI, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from pallas_contract import __version__
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

DESCRIPTION = "Finds the agents of a fleet, probes them, and publishes what it knows (seed 000, section 1)."

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
    """Return the ASGI application: ready-made documents in front of all else, also of FastAPI's own middleware."""
    app = FastAPI(
        title="pallas registry",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # a registry has its own metrics, and no spans
    )
    _probes(app, backend)
    _people(app, backend)
    _agents(app, backend)
    _uptime(app, backend)
    app.add_exception_handler(HTTPException, _refused)

    @cache
    def description() -> Document:
        """Make it when first asked for: most registries never are."""
        schema = app.openapi()
        schema["paths"] |= openapi.paths()
        return Document(json.dumps(schema, ensure_ascii=False).encode())

    def find(method: str, path: str, query: bytes) -> Document | None:
        # described here and not by FastAPI, which knows nothing of the ready-made documents
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


def _probes(app: FastAPI, backend: Backend) -> None:
    @app.head("/livez", include_in_schema=False)
    @app.get("/livez", tags=["probes"], description="The process answers.")
    async def livez() -> dict[str, str]:
        return {"status": "ok"}

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", tags=["probes"], description=_READY, responses=_NOT_READY)
    async def readyz() -> JSONResponse:
        reason = backend.waiting()
        if reason:
            return JSONResponse({"status": "starting", "message": reason}, status_code=503)
        return JSONResponse({"status": "ok"})

    @app.head("/metrics", include_in_schema=False)
    @app.get("/metrics", tags=["probes"], response_class=Response, responses=_METRICS)
    async def expose(request: Request) -> Response:
        """Prometheus metrics, in text or OpenMetrics by the Accept header."""
        body, content_type = await backend.metrics.scrape(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})


def _people(app: FastAPI, backend: Backend) -> None:
    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request) -> Response:
        return Response(
            backend.page(request.scope["query_string"]), media_type="text/html", headers=status_page_page.HEADERS
        )

    @app.get(events.PATH, tags=["people"], description=_FOLLOW, response_class=Response, responses=_EVENTS)
    async def follow(request: Request, last_event_id: Annotated[str, Header()] = "") -> Response:
        address = request.client.host if request.client else ""
        if not backend.streams.admits(address):
            raise HTTPException(503, "too many streams are open", {"retry-after": "5"})
        stream = backend.streams.follow(last_event_id, address)
        return StreamingResponse(stream, media_type="text/event-stream", headers=events.HEADERS)

    @app.post("/agents/{agent}/recheck", tags=["people"], responses=_RECHECK)
    async def recheck(request: Request, agent: str) -> Response:
        """Probe all replicas of the agent now and answer with what is found; one agent at a time."""
        # a form of another site could post here without asking: browsers say so in this header
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise HTTPException(403, "rechecks are not for other sites")
        if "text/event-stream" in request.headers.get("accept", ""):  # an agent that registered with this as its URL
            raise HTTPException(403, "rechecks are not for MCP")
        try:
            condition = await backend.recheck(agent)
        except KeyError:
            raise HTTPException(404, "there is no such agent") from None
        except Busy as busy:
            raise HTTPException(429, str(busy), {"retry-after": str(busy.seconds)}) from None
        if "text/html" in request.headers.get("accept", ""):  # a form, without JavaScript
            return Response(status_code=303, headers={"location": f"../../?{urlencode({'focus': agent})}#focus"})
        return JSONResponse({"agent": agent, **server_json.state_fields(condition.state, condition.reason)})


def _uptime(app: FastAPI, backend: Backend) -> None:
    @app.head("/uptime", include_in_schema=False)
    @app.get("/uptime", tags=["people"], description=_UPTIME, responses=_UPTIMES)
    async def uptime() -> JSONResponse:
        return JSONResponse(backend.uptime(), headers={"cache-control": "no-store", "access-control-allow-origin": "*"})


def _agents(app: FastAPI, backend: Backend) -> None:
    @app.post(mcp_server.PATH, include_in_schema=False)
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


_READY = "Each agent was probed once and is, in containers, no longer starting, or enough time for that has passed."
_NOT_READY: dict[int | str, dict[str, Any]] = {503: {"description": "Agents have not been probed yet."}}
_UPTIME = "Seconds of the last hour and day in which each agent was up, and of which anything is known."
_FOLLOW = "Changes of state as server-sent events, from now on or after the event `Last-Event-ID`."
_METRICS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}, "application/openmetrics-text": {}}}}
_SECONDS = {"type": "object", "required": ["up", "known"], "additionalProperties": {"type": "number", "minimum": 0}}
_WINDOWS = {"type": "object", "required": ["hour", "day"], "properties": {"hour": _SECONDS, "day": _SECONDS}}
_UPTIMES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["agents"],
                    "properties": {"agents": {"type": "object", "additionalProperties": _WINDOWS}},
                }
            }
        }
    }
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}},
    503: {"description": "Too many streams are open."},
}
_RECHECK: dict[int | str, dict[str, Any]] = {
    403: {"description": "A page of another site asks."},
    404: {"description": "There is no such agent."},
    429: {"description": "Another recheck is under way or was just now; see Retry-After."},
}

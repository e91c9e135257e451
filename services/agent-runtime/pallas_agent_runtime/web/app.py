"""The HTTP side of one agent: `/mcp`, and plain pages for probes, people and Prometheus (design.md section 5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.health.downstream import Downstream
from pallas_agent_runtime.health.preflight import Preflight
from pallas_agent_runtime.metrics import Metrics
from pallas_agent_runtime.web import body_limits, sessions
from pallas_agent_runtime.web.body_limits import Refusals
from pallas_agent_runtime.web.repeated_health import RepeatedHealth
from pallas_agent_runtime.web.sessions import Sessions
from pallas_contract import names
from pallas_contract.documents import registry_api
from pallas_contract.documents import server_card as documents_server_card
from pallas_contract.documents import server_json as documents_server_json
from pallas_contract.documents.health import Health
from pallas_contract.documents.reason import reported
from pallas_contract.fleet.fastagent import Capabilities
from pallas_contract.launch import addresses
from pallas_service.access import hosts
from pallas_service.access.gate import Gate
from pallas_service.access.hosts import HostCheck
from pallas_service.http.readiness import Readiness


class Pages(Readiness):
    """The plain pages of one agent, ready once its engine is warm. `started` is `updatedAt` of its registry entry."""

    def __init__(
        self,
        *,
        settings: Settings,
        capabilities: Capabilities | None,
        current: Callable[[], Health],
        downstream: Downstream,
        preflight: Preflight,
        metrics: Metrics,
        started: datetime,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._capabilities = capabilities
        self._started = started
        self._current = current
        self._downstream = downstream
        self._preflight = preflight
        self._metrics = metrics

    def routes(self) -> list[Route]:
        return [
            *super().routes(),
            Route(names.HEALTH_PATH, self.healthz),
            Route("/metrics", self.metrics),
            Route(names.SERVER_JSON_PATH, self.server_json),
            Route(f"{names.MCP_PATH}/server-card", self.server_card),
        ]

    def count(self, opened: Sessions) -> None:
        """Say in the metrics how many sessions there are, and what became of others."""
        self._metrics.watch_sessions(lambda: len(opened), lambda: opened.ended, lambda: opened.refused)

    def remembering(self, transport: ASGIApp) -> ASGIApp:
        """Return the transport with a short way for who asks for the health again."""
        return RepeatedHealth(transport, self._current, self._metrics.repeated_health)

    async def healthz(self, request: Request) -> Response:
        """Return the answer of `get_health`, and what it was made of, with the age in seconds of each part."""
        now = self._current()
        downstream = {
            name: {
                "state": probe.result.state,
                "reason": probe.result.reason.message,
                "age": round(self._downstream.age(probe), 1),
            }
            for name, probe in self._downstream.last_probes.items()
        }
        llm = {
            name: {"ok": outcome.ok, "reason": outcome.reason, "age": round(self._preflight.age(outcome), 1)}
            for name, outcome in self._preflight.outcomes.items()
        }
        identity = {"name": self._settings.slug, "version": self._settings.fleet.version}
        body: dict[str, Any] = {**now.as_dict(), **identity, "llm": llm, "downstream": downstream}
        return JSONResponse(body, status_code=503 if now.status == "error" else 200)

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})

    async def server_json(self, request: Request) -> Response:
        """Return the agent's own entry of the registry (seed 000 section 1)."""
        settings = self._settings
        now = self._current()
        server = documents_server_json.server(settings.fleet, settings.name, self._capabilities, settings.placement)
        reason = reported(now.message, well=now.status == "ok")
        return JSONResponse({"servers": [documents_server_json.entry(server, self._started, now.status, reason)]})

    async def server_card(self, request: Request) -> Response:
        """Return who this server is and where, for anybody's eyes (SEP-2127), without a word about its tools."""
        settings = self._settings
        seed = documents_server_json.server(settings.fleet, settings.name, None, settings.placement)
        strict = registry_api.server(seed, addresses.agent_url(settings.fleet, settings.name, settings.placement))
        headers = {"access-control-allow-origin": "*", "cache-control": "public, max-age=3600"}
        body = documents_server_card.card(strict, SUPPORTED_PROTOCOL_VERSIONS)
        return JSONResponse(body, media_type=documents_server_card.CARD_TYPE, headers=headers)


def session_manager(server: Server[Any], settings: Settings) -> StreamableHTTPSessionManager:
    """Return the transport of both eras; an agent that remembers nothing has no sessions either.

    What is a little too large is still read, so that the caller gets a tool error that names the field; anything beyond
    is refused unread (`body_limits`).
    """
    return StreamableHTTPSessionManager(
        server,
        stateless=not settings.remembers,
        security_settings=hosts.settings(settings.allowed_hosts),
        session_idle_timeout=sessions.IDLE_SESSION if settings.remembers else None,
        max_sessions=None,  # `sessions` knows which one to end instead of refusing
        max_request_body_size=body_limits.most_read(settings.max_body),
    )


def app(manager: StreamableHTTPSessionManager, pages: Pages, max_body: int, gate: Gate | None = None) -> Starlette:
    """Return the application. All pages are open; `/mcp` is behind the gate, if there is one."""
    mcp: ASGIApp = pages.remembering(StreamableHTTPASGIApp(manager))
    if not manager.stateless:
        mcp = opened = Sessions(mcp, sessions.SESSIONS, sessions.IDLE_SESSION)
        pages.count(opened)
    mcp = Refusals(mcp, max_body)  # inside of the gate: who has no token uses up none of its budget
    if gate is not None:
        mcp = HostCheck(gate.around(mcp), manager.security_settings)
    routes = [*pages.routes(), *(gate.routes() if gate else ()), Route(names.MCP_PATH, mcp)]
    served = Starlette(routes=routes)
    # A redirect goes to whatever Host the request names, and always to http: behind TLS the next one is in clear.
    served.router.redirect_slashes = False
    return served

"""The HTTP side of the gateway: agents behind the gate, and plain pages for probes and Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pallas_contract import names
from pallas_gateway.data_plane.plane import AGENT
from pallas_gateway.health import Reachability
from pallas_gateway.metrics import Metrics
from pallas_service.access import hosts
from pallas_service.access.gate import Gate
from pallas_service.http.readiness import Readiness

_AGENT_PATH = re.compile(rf"/agents/([^/]+){re.escape(names.MCP_PATH)}")


class Pages(Readiness):
    """The plain pages, open to everybody. `identity` goes into `/healthz`."""

    def __init__(self, metrics: Metrics, reachability: Reachability, identity: dict[str, str]) -> None:
        super().__init__()
        self._metrics = metrics
        self._reachability = reachability
        self._identity = identity

    def routes(self) -> list[Route]:
        return [*super().routes(), Route(names.HEALTH_PATH, self.healthz), Route("/metrics", self.metrics)]

    async def healthz(self, request: Request) -> Response:
        """Return the health in the form of `get_health`, with how the agents failed that did."""
        now = self._reachability.current()
        body: dict[str, Any] = {**now.as_dict(), **self._identity, "agents": self._reachability.lost}
        return JSONResponse(body)

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})


class App:
    """ASGI of the whole gateway. `allowed_hosts` are the Host headers accepted in front of agents and of `own`."""

    def __init__(
        self,
        plane: ASGIApp,
        pages: Pages,
        allowed_hosts: Iterable[str],
        gate: Gate | None = None,
        *,
        own: ASGIApp | None = None,
    ) -> None:
        security = hosts.settings(allowed_hosts)
        self._agents = hosts.HostCheck(gate.around(plane) if gate else plane, security)
        self._own = hosts.HostCheck(gate.around(own) if gate else own, security) if own else None
        self._pages = Starlette(routes=[*pages.routes(), *(gate.routes() if gate else ())])
        # A redirect goes to whatever Host the request names, and always to http: behind TLS the next one is in clear.
        self._pages.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if match := _AGENT_PATH.fullmatch(scope["path"]):
            await self._agents({**scope, "path_params": {AGENT: match[1]}}, receive, send)
        elif self._own and scope["path"] == names.MCP_PATH:
            await self._own(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

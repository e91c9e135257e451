"""The HTTP side of the gateway: agents behind the gate, and plain pages for probes and Prometheus."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pallas_contract import names
from pallas_gateway.audit.recorder import Audit
from pallas_gateway.confirmation import api
from pallas_gateway.data_plane.plane import AGENT, KIND
from pallas_gateway.health import Reachability
from pallas_gateway.metrics import Metrics
from pallas_gateway.watching import feed
from pallas_service.access import hosts
from pallas_service.access.caller import Caller, caller
from pallas_service.access.gate import Gate
from pallas_service.console import pages as console_pages
from pallas_service.http.readiness import Readiness

ROUTED_PATH = f"/agent{names.MCP_PATH}"
"""Where a caller is led to the agent of its route."""
_MEMBER_PATH = re.compile(rf"/(agent|service)s/([^/]+){re.escape(names.MCP_PATH)}")
_METRICS_PATH = "/metrics"
_NAMING = (names.HEALTH_PATH, _METRICS_PATH)
"""Pages that say more to who shows a token."""
_CONFIRMATIONS = re.compile(rf"{re.escape(api.PATH)}(/|$)")


class Pages(Readiness):
    """The plain pages, open to everybody. `identity` goes into `/healthz`, and the last record of `audit`.

    `may_see` says of a verified caller, or of nobody, whether it reads the names of members and tenants there.
    `application` are the routes of a web application of the project.
    """

    def __init__(
        self,
        metrics: Metrics,
        reachability: Reachability,
        identity: dict[str, str],
        *,
        audit: Audit | None = None,
        may_see: Callable[[Caller | None], bool] = lambda caller: True,
        application: Sequence[Route] = (),
    ) -> None:
        super().__init__()
        self._may_see = may_see
        self._metrics = metrics
        self._reachability = reachability
        self._identity = identity
        self._audit = audit
        self._application = application

    def routes(self) -> list[Route]:
        own = [Route(names.HEALTH_PATH, self.healthz), Route(_METRICS_PATH, self.metrics)]
        return [*super().routes(), *own, *self._application]

    async def healthz(self, request: Request) -> Response:
        """Return the health in the form of `get_health`, with how the agents failed that did."""
        may_see = self._may_see(caller(request))
        now = self._reachability.current(names=may_see)
        body: dict[str, Any] = {**now.as_dict(), **self._identity}
        if may_see:
            body["agents"] = self._reachability.lost
        if self._audit:
            body["audit"] = {"head": self._audit.head}
        return JSONResponse(body)

    async def metrics(self, request: Request) -> Response:
        rendered = self._metrics.render(names=self._may_see(caller(request)))
        return Response(rendered, headers={"content-type": CONTENT_TYPE_LATEST})


class App:
    """ASGI of the whole gateway. `allowed_hosts` are the Host headers accepted in front of agents, `own` and `console`.

    `console` is what the page of people asks for, which is there with it; `routed` says that there are routes.
    `confirmations` is their API.
    """

    def __init__(
        self,
        plane: ASGIApp,
        pages: Pages,
        allowed_hosts: Iterable[str],
        gate: Gate | None = None,
        *,
        own: ASGIApp | None = None,
        console: ASGIApp | None = None,
        routed: bool = False,
        confirmations: ASGIApp | None = None,
    ) -> None:
        security = hosts.settings(allowed_hosts)

        def behind(app: ASGIApp) -> ASGIApp:
            return hosts.HostCheck(gate.around(app) if gate else app, security)

        self._members = behind(plane)
        self._routed = routed
        self._own = behind(own) if own else None
        self._console = behind(console) if console else None
        self._confirmations = behind(confirmations) if confirmations else None
        routes = [*pages.routes(), *(gate.routes() if gate else ()), *(console_pages.routes() if console else ())]
        self._pages = Starlette(routes=routes)
        # A redirect goes to whatever Host the request names, and always to http: behind TLS the next one is in clear.
        self._pages.router.redirect_slashes = False
        self._known = gate.around(self._pages) if gate else self._pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if match := _MEMBER_PATH.fullmatch(scope["path"]):
            await self._members({**scope, "path_params": {KIND: match[1], AGENT: match[2]}}, receive, send)
        elif self._routed and scope["path"] == ROUTED_PATH:
            await self._members({**scope, "path_params": {AGENT: ""}}, receive, send)
        elif self._own and scope["path"] == names.MCP_PATH:
            await self._own(scope, receive, send)
        elif self._console and scope["path"] in (console_pages.AGENTS_PATH, feed.PATH):
            await self._console(scope, receive, send)
        elif self._confirmations and _CONFIRMATIONS.match(scope["path"]):
            await self._confirmations(scope, receive, send)
        elif scope["path"] in _NAMING and any(name == b"authorization" for name, _ in scope["headers"]):
            await self._known(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

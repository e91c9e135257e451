"""Check of Host and Origin before any token, against pages of other sites (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Iterable

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

_JUDGED = frozenset({b"host", b"origin"})


def settings(hosts: Iterable[str]) -> TransportSecuritySettings:
    """Return the SDK's settings for `hosts`, the Host headers that are accepted; `name:*` admits every port."""
    allowed = list(hosts)
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in allowed]
    return TransportSecuritySettings(allowed_hosts=allowed, allowed_origins=origins)


class HostCheck:
    """ASGI in front of a gate: 421 for another Host, 403 for another Origin."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings | None) -> None:
        self._app = app
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # the SDK goes through all headers for each of the two
        judged = [header for header in scope["headers"] if header[0] in _JUDGED]
        refused = await self._security.validate_request(Request({"type": "http", "headers": judged}))
        await (refused or self._app)(scope, receive, send)

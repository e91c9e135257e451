"""Check of Host and Origin before any token, against pages of other sites (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Iterable

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

_JUDGED = frozenset({b"host", b"origin"})
_MOST = 64
"""Hosts that are known to be accepted: each port of `name:*` is another one."""


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
        self._accepted: set[tuple[bytes, bytes]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        judged = [header for header in scope["headers"] if header[0] in _JUDGED]
        if len(judged) != 1 or judged[0] not in self._accepted:
            refused = await self._security.validate_request(Request({"type": "http", "headers": judged}))
            if refused:
                await refused(scope, receive, send)
                return
            # what the SDK accepts without an Origin it accepts again
            if len(judged) == 1 and len(self._accepted) < _MOST:
                self._accepted.add(judged[0])
        await self._app(scope, receive, send)

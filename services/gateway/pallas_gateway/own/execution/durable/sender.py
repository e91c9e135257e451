"""The sender of a graph, as far as it must be known after its request: who it was, and in which trace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, principal_components
from starlette.requests import Request
from starlette.types import Message

from pallas_contract import names

_HEADERS = ("traceparent", names.CALLER_HEADER.lower())
"""Headers that say whose work a request is."""


def of(request: Request) -> dict[str, Any]:
    """Return the sender of `request` as JSON, without its token."""
    headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
    user = request.scope.get("user")
    if not isinstance(user, AuthenticatedUser):
        return {"headers": headers}
    client, issuer, subject = principal_components(user.access_token)
    return {"headers": headers, "client": client, "issuer": issuer, "subject": subject}


def request(sender: Mapping[str, Any]) -> Request:
    """Return a request of the same sender, whose connection never ends.

    What a caller may do now is decided by who it is, so that it counts for a graph of yesterday too.
    """
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": names.MCP_PATH,
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in sender["headers"].items()],
    }
    if "client" in sender:
        issuer = sender["issuer"]
        claims = {"iss": issuer} if issuer is not None else None
        token = AccessToken(token="", client_id=sender["client"], scopes=[], subject=sender["subject"], claims=claims)
        scope["user"] = AuthenticatedUser(token)
    return Request(scope, _never)


async def _never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError

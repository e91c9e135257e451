"""The caller of a request, once its token is verified."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import principal_components
from starlette.requests import HTTPConnection


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. `identity` is the same for every token of one caller; `repr` has no token."""

    name: str
    identity: str
    token: str = field(repr=False)
    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    """The `aud` of a JWT; empty for a static token."""


def caller(request: HTTPConnection | None) -> Caller | None:
    """Return the verified caller of `request`; None where nobody is asked for a token."""
    user = request.scope.get("user") if request is not None else None
    if not isinstance(user, AuthenticatedUser):
        return None
    token = user.access_token
    client, issuer, subject = principal_components(token)
    return Caller(
        name=subject or client,
        identity=json.dumps([client, issuer, subject]),  # as JSON: a separator could stand in one of them
        token=token.token,
        issuer=issuer,
        audiences=frozenset((token.claims or {}).get("aud", ())),
    )

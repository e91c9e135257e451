"""The caller of a request, once its token is verified."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import principal_components
from starlette.requests import HTTPConnection

from pallas_contract import names


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. `identity` is the same for every token of one caller; `repr` has no token.

    Of a call that came through the gateway the caller there is a part of it, so that its callers stay apart.
    """

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
    parts: tuple[str | None, ...] = (client, issuer, subject)
    if client == names.GATEWAY and issuer is None and request is not None:
        # from anybody else it would be a claim that nobody has verified
        parts += tuple(filter(None, [request.headers.get(names.CALLER_HEADER)]))
    return Caller(
        name=subject or client,
        identity=_identity(parts),
        token=token.token,
        issuer=issuer,
        audiences=frozenset((token.claims or {}).get("aud", ())),
    )


@lru_cache(maxsize=1024)
def _identity(parts: tuple[str | None, ...]) -> str:
    """Return the parts as JSON: a separator could stand in one of them."""
    return json.dumps(parts)

"""In front of `/mcp`: no token, no entry; and where a client can get one (RFC 6750, RFC 9728)."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.handlers.metadata import ProtectedResourceMetadataHandler
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from mcp.shared.auth import ProtectedResourceMetadata
from pydantic import AnyHttpUrl
from starlette.authentication import AuthCredentials, UnauthenticatedUser
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pallas_contract import names

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class Gate:
    """The requirements for callers of `/mcp`. `resource` is the URL they know the agent by.

    Without an `issuer` there are static tokens only, which no client can get by itself: then there is no metadata.
    """

    verifier: TokenVerifier
    resource: str
    issuer: str | None = None
    scopes: tuple[str, ...] = ()

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return `app` for those who present a token that is accepted; 401 or 403 for all others."""
        metadata_url = build_resource_metadata_url(AnyHttpUrl(self.resource)) if self.issuer else None
        required = RequireAuthMiddleware(app, list(self.scopes), metadata_url)
        backend = BearerAuthBackend(self.verifier)
        return _Challenge(required, backend, resource=self.resource, metadata=metadata_url, scopes=self.scopes)

    def routes(self) -> Sequence[Route]:
        """Return the routes of the metadata: the paths of RFC 9728 for the resource and for `/mcp`, and the bare one.

        Clients ask in this order. The first two differ behind a reverse proxy that has the agents in its paths.
        """
        if self.issuer is None:
            return ()
        metadata = ProtectedResourceMetadata.model_validate(
            {
                "resource": self.resource,
                "authorization_servers": [self.issuer],
                "scopes_supported": list(self.scopes) or None,
            }
        )
        page = cors_middleware(ProtectedResourceMetadataHandler(metadata).handle, ["GET", "OPTIONS"])
        resource_path = WELL_KNOWN + urlsplit(self.resource).path
        paths = dict.fromkeys((resource_path, WELL_KNOWN + names.MCP_PATH, WELL_KNOWN))
        return [Route(path, page, methods=["GET", "OPTIONS"]) for path in paths]


class _Challenge:
    """Middleware that puts right what the SDK's challenges leave out, and what they say too much.

    The scopes to ask for belong into each of them (MCP, Authorization: Scope Selection); who has shown no bearer token
    has made no error (RFC 6750, 3.1). The SDK's backend sees the one header that
    it judges, and searches no others.
    """

    def __init__(
        self,
        app: ASGIApp,
        backend: BearerAuthBackend,
        *,
        resource: str,
        metadata: AnyHttpUrl | None,
        scopes: tuple[str, ...],
    ) -> None:
        self._app = app
        self._backend = backend
        self._scope = f', scope="{" ".join(scopes)}"' if scopes else ""
        hint = f', resource_metadata="{metadata}"' if metadata else ""
        self._invitation = f'Bearer realm="{resource}"{hint}{self._scope}'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        presented = [header for header in scope["headers"] if header[0] == b"authorization"]
        if len(presented) > 1:  # a proxy in front may have looked at the other one
            ambiguous = Response(
                status_code=400, headers={"www-authenticate": f'{self._invitation}, error="invalid_request"'}
            )
            return await ambiguous(scope, receive, send)
        if not presented or not presented[0][1].lower().startswith(b"bearer "):
            invited = Response(status_code=401, headers={"www-authenticate": self._invitation})
            return await invited(scope, receive, send)
        verified = await self._backend.authenticate(HTTPConnection({"type": "http", "headers": presented}))
        scope["auth"], scope["user"] = verified or (AuthCredentials(), UnauthenticatedUser())
        if not self._scope:
            return await self._app(scope, receive, send)

        async def send_with_scope(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and message["status"] in (401, 403):
                headers = message["headers"]
                message["headers"] = [
                    (name, value + self._scope.encode() if name == b"www-authenticate" else value)
                    for name, value in headers
                ]
            await send(message)

        return await self._app(scope, receive, send_with_scope)

"""An MCP session with one server in one era, as any client would have it, message by message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pallas_testing.conformance.wire import Exchange, Wire

Era = Literal["2025-11-25", "2026-07-28"]
LEGACY: Era = "2025-11-25"
MODERN: Era = "2026-07-28"
ERAS: tuple[Era, ...] = (LEGACY, MODERN)

_CLIENT = {"name": "pallas-testing", "version": "1"}
_META = "io.modelcontextprotocol/"
_NAMED = {"tools/call", "prompts/get"}
"""Methods whose header `Mcp-Name` repeats the parameter `name` (2026-07-28)."""
_DISCOVER = "server/discover"


class Session:
    """A session in one era: with a handshake (2025-11-25), or requests that stand alone (2026-07-28)."""

    def __init__(self, wire: Wire, era: Era) -> None:
        self.era = era
        self.id = ""
        """The `Mcp-Session-Id` that the server has given, if it has."""
        self._wire = wire
        self._version: str = era
        self._number = 0

    async def open(self) -> Exchange:
        """Begin, without a session before it: `initialize`, or `server/discover`."""
        if self.era == MODERN:
            return await self.request(_DISCOVER)
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
        opening = await self.request("initialize", params)
        self.id = opening.headers.get("mcp-session-id", "")
        self._version = str(opening.result.get("protocolVersion", LEGACY))
        if spoken(self.era, opening):
            await self._wire.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._headers())
        return opening

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, progress_token: str = ""
    ) -> Exchange:
        """Send one request; with a token the server may send progress."""
        self._number += 1
        body = dict(params or {})
        meta: dict[str, Any] = {"progressToken": progress_token} if progress_token else {}
        headers = self._headers() if method != "initialize" else {}
        if self.era == MODERN:
            meta |= {
                f"{_META}protocolVersion": MODERN,
                f"{_META}clientInfo": _CLIENT,
                f"{_META}clientCapabilities": {},
            }
            headers |= {"mcp-method": method} | ({"mcp-name": str(body.get("name"))} if method in _NAMED else {})
        if meta:
            body["_meta"] = meta
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": body}
        return await self._wire.post(message, headers)

    async def close(self) -> tuple[Exchange, ...]:
        """End the session with DELETE, and ask once more by its id; nothing where the server has given none."""
        if not self.id:
            return ()
        return (await self._wire.delete(self._headers()), await self.request("tools/list"))

    def _headers(self) -> dict[str, str]:
        session = {"mcp-session-id": self.id} if self.id else {}
        return {"mcp-protocol-version": self._version, **session}


def spoken(era: Era, opening: Exchange) -> bool:
    """Return True where a server has answered the first request as one that speaks the era."""
    if era == LEGACY:
        return isinstance(opening.result.get("protocolVersion"), str)
    versions = opening.result.get("supportedVersions")
    return isinstance(versions, list) and MODERN in versions

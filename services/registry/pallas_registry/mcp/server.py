"""`/mcp` of the registry: MCP in both eras, stateless, without an SDK that would treble the registry's start and image.

Current era (2026-07-28): `server/discover`, `tools/list`, `tools/call`, each request complete in itself. Earlier eras:
`initialize` opens no session; what follows is answered as it comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pallas_contract import __version__
from pallas_contract.probe.session import LEGACY, MODERN
from pallas_registry.mcp import tools as mcp_tools
from pallas_registry.status_page.overview import Overview

PATH = "/mcp"
LIMIT = 64 * 1024
"""Most bytes of a request that are read."""
_EARLIER = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
_META = "io.modelcontextprotocol/"
_SERVER = {"name": "pallas-registry", "version": __version__}
_CAPABILITIES: dict[str, Any] = {"tools": {}}
_FRESH = {"ttlMs": 0, "cacheScope": "public"}

PARSE, REQUEST, METHOD, PARAMS, MISMATCH, VERSION = -32700, -32600, -32601, -32602, -32020, -32022
"""JSON-RPC error codes; the last two are MCP's: header and body differ, protocol version not supported."""

Reply = tuple[int, dict[str, Any] | None]
"""HTTP status and the JSON-RPC message; None is an empty body."""


class _Error(Exception):
    def __init__(self, status: int, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message} | ({"data": data} if data else {})


def _mismatch() -> _Error:
    return _Error(400, MISMATCH, "the MCP headers and the body differ")


def foreign(origin: str | None, hosts: Collection[str]) -> bool:
    """Whether a page of another site asks (the specification: validate Origin, answer 403).

    `hosts` are what this endpoint is known by, as in PALLAS_ALLOWED_HOSTS. The request's own Host proves nothing: a
    page whose name was made to resolve to us sends that name in both headers (DNS rebinding).
    """
    if origin is None:
        return False
    scheme, _, at = origin.partition("://")
    known = any(at == host or (host.endswith(":*") and at.startswith(host[:-1])) for host in hosts)
    return scheme not in ("http", "https") or not known


def answer(headers: Mapping[str, str], body: bytes, look: Callable[[], Overview]) -> Reply:
    """Answer one POST; `headers` by lower-case name. Never raises for anything in the request."""
    message: Any = None
    try:
        message = _parsed(body)
        if "id" not in message:
            return 202, None
        result = _result(headers, message, look)
        return 200, {"jsonrpc": "2.0", "id": message["id"], "result": result}
    except _Error as error:
        known = message.get("id") if isinstance(message, dict) else None
        return error.status, {"jsonrpc": "2.0", "id": known, "error": error.error}


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()  # else it could not be answered
    except (ValueError, RecursionError):
        raise _Error(400, PARSE, "not JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise _Error(400, REQUEST, "not a JSON-RPC 2.0 request")
    if not isinstance(message.get("id", ""), str | int) or isinstance(message.get("id"), bool):
        raise _Error(400, REQUEST, "id must be text or a whole number")
    return message


def _result(headers: Mapping[str, str], message: dict[str, Any], look: Callable[[], Overview]) -> dict[str, Any]:
    method, params = message["method"], message.get("params", {})
    if not isinstance(params, dict):
        raise _Error(400, PARAMS, "params must be an object")
    modern = _is_modern(headers, method, params)
    more = {"resultType": "complete", "_meta": {f"{_META}serverInfo": _SERVER}} if modern else {}
    if method == "tools/list":
        return {"tools": mcp_tools.LISTED, **(_FRESH if modern else {}), **more}
    if method == "tools/call":
        return {**_called(headers, params, look, modern), **more}
    if modern and method == "server/discover":
        return {"supportedVersions": [MODERN], "capabilities": _CAPABILITIES, **_FRESH, **more}
    if not modern and method == "initialize":
        asked = params.get("protocolVersion")
        version = asked if asked in _EARLIER else LEGACY
        return {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _SERVER}
    if not modern and method == "ping":
        return {}
    raise _Error(404 if modern else 200, METHOD, f"unknown method {method[:100]}")


def _is_modern(headers: Mapping[str, str], method: str, params: Mapping[str, Any]) -> bool:
    """Whether the request is of the current era, as its headers and its body must both say."""
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    said, version = meta.get(f"{_META}protocolVersion"), _header(headers, "mcp-protocol-version")
    if said is None:
        if version is None or version in _EARLIER:
            return False
        raise _Error(400, PARAMS, f"params._meta must have {_META}protocolVersion")
    if said != version:
        raise _mismatch()
    if said in _EARLIER:
        return False
    if said != MODERN:
        raise _Error(400, VERSION, "unsupported protocol version", {"supported": [MODERN], "requested": said})
    if _header(headers, "mcp-method") != method:
        raise _mismatch()
    if not isinstance(meta.get(f"{_META}clientCapabilities"), dict):
        raise _Error(400, PARAMS, f"params._meta must have {_META}clientCapabilities")
    return True


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """Without the space around it, which httptools leaves and RFC 9110 section 5.5 excludes."""
    value = headers.get(name)
    return None if value is None else value.strip(" \t")


def _called(
    headers: Mapping[str, str], params: Mapping[str, Any], look: Callable[[], Overview], modern: bool
) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _Error(400 if modern else 200, PARAMS, "name must be text and arguments an object")
    if modern and _header(headers, "mcp-name") != name:
        raise _mismatch()
    try:
        return {**mcp_tools.call(name, arguments, look), "isError": False}
    except mcp_tools.NoSuchTool:
        raise _Error(400 if modern else 200, PARAMS, f"unknown tool {name[:100]}") from None
    except mcp_tools.BadArguments as bad:
        return {"content": [{"type": "text", "text": str(bad)}], "isError": True}

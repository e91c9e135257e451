"""`/mcp` of the registry: MCP in both eras, stateless, without an SDK that would treble the registry's start and image.

Current era (2026-07-28): `server/discover`, `tools/list`, `tools/call`, each request complete in itself. Earlier eras:
`initialize` opens no session; what follows is answered as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pallas_contract import __version__, names
from pallas_contract.probe.session import LEGACY, MODERN
from pallas_registry.mcp import jsonrpc, tools
from pallas_registry.mcp.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Handler, Request, Response
from pallas_registry.status_page.overview import Overview

PATH = "/mcp"
LIMIT = 64 * 1024
"""Most bytes of a request that are read."""
_EARLIER = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
_META = "io.modelcontextprotocol/"
_SERVER = {"name": names.REGISTRY_SERVER, "version": __version__}
_CAPABILITIES: dict[str, Any] = {"tools": {}}
_FRESH = {"ttlMs": 0, "cacheScope": "public"}

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
"""Error codes of MCP beside those of JSON-RPC: header and body differ, protocol version not supported."""


class _Error(Exception):
    def __init__(self, status: int, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message} | ({"data": data} if data else {})


@dataclass(frozen=True, slots=True)
class _Call:
    """A request of a method of MCP, checked. `modern` is the era of 2026-07-28."""

    headers: Mapping[str, str]
    params: dict[str, Any]
    modern: bool
    overview: Callable[[], Overview]


@dataclass(frozen=True, slots=True)
class _Method:
    """A row of the table: how the result is made, the eras that have the method, whether clients may cache it."""

    result: Callable[[_Call], dict[str, Any]]
    modern: bool = True
    legacy: bool = True
    cacheable: bool = False


class McpServer:
    """The methods of MCP, and those of `registration`, which are answered at the same path."""

    def __init__(self, overview: Callable[[], Overview], registration: Callable[[], Mapping[str, Handler]]) -> None:
        """`registration` gives the methods that agents register with: none while nobody may."""
        self._overview = overview
        self._registration = registration
        self._methods: dict[str, Handler] = {name: partial(self._answer, row) for name, row in _METHODS.items()}

    async def answer(self, headers: Mapping[str, str], body: bytes) -> Response:
        """Answer one POST; `headers` by lower-case name. Raises nothing for anything in the request."""
        # looked up anew: agents.yaml may let agents register, or no longer, while the registry runs
        methods = {**self._methods, **self._registration()}
        return await jsonrpc.dispatch(headers, body, methods=methods, default=partial(self._answer, None))

    async def _answer(self, method: _Method | None, request: Request) -> Response:
        message = request.message
        try:
            _check_shape(message)
            # a notification: nothing here acts on one, and the specification forbids an answer
            if "id" not in message:
                return Response(202, None)
            result = self._result(method, request.headers, message)
            return Response(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})
        except _Error as error:
            request_id = message.get("id") if isinstance(message, dict) else None
            return Response(error.status, {"jsonrpc": "2.0", "id": request_id, "error": error.error})

    def _result(self, method: _Method | None, headers: Mapping[str, str], message: dict[str, Any]) -> dict[str, Any]:
        name = message["method"]
        params = message.get("params", {})
        if not isinstance(params, dict):
            raise _Error(400, INVALID_PARAMS, "params must be an object")
        modern = _is_modern(headers, name, params)
        if method is None or not (method.modern if modern else method.legacy):
            # the current era wants a 404 here; earlier clients take one for a session that has ended
            raise _Error(404 if modern else 200, METHOD_NOT_FOUND, f"unknown method {name[:100]}")
        result = method.result(_Call(headers, params, modern, self._overview))
        if not modern:
            return result
        complete = {"resultType": "complete", "_meta": {f"{_META}serverInfo": _SERVER}}
        return {**result, **(_FRESH if method.cacheable else {}), **complete}


def foreign(origin: str | None, hosts: Collection[str]) -> bool:
    """Return True when a page of another site asks (the specification: validate Origin, answer 403).

    `hosts` are what this endpoint is known by, as in PALLAS_ALLOWED_HOSTS. The request's own Host proves nothing: a
    page whose name was made to resolve to us sends that name in both headers (DNS rebinding).
    """
    if origin is None:
        return False
    scheme, _, authority = origin.partition("://")
    ours = any(authority == host or (host.endswith(":*") and authority.startswith(host[:-1])) for host in hosts)
    return scheme not in ("http", "https") or not ours


def _mismatch() -> _Error:
    return _Error(400, HEADER_MISMATCH, "the MCP headers and the body differ")


def _check_shape(message: Any) -> None:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise _Error(400, INVALID_REQUEST, "not a JSON-RPC 2.0 request")
    if not isinstance(message.get("id", ""), str | int) or isinstance(message.get("id"), bool):
        raise _Error(400, INVALID_REQUEST, "id must be text or a whole number")


def _is_modern(headers: Mapping[str, str], method: str, params: Mapping[str, Any]) -> bool:
    """Return True when the request is of the current era, as its headers and its body must both say."""
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    requested = meta.get(f"{_META}protocolVersion")
    version = _header(headers, "mcp-protocol-version")
    if requested is None:
        if version is None or version in _EARLIER:
            return False
        raise _Error(400, INVALID_PARAMS, f"params._meta must have {_META}protocolVersion")
    if requested != version:
        raise _mismatch()
    if requested in _EARLIER:
        return False
    if requested != MODERN:
        data = {"supported": [MODERN], "requested": requested}
        raise _Error(400, UNSUPPORTED_VERSION, "unsupported protocol version", data)
    if _header(headers, "mcp-method") != method:
        raise _mismatch()
    if not isinstance(meta.get(f"{_META}clientCapabilities"), dict):
        raise _Error(400, INVALID_PARAMS, f"params._meta must have {_META}clientCapabilities")
    return True


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """Return the header without the space around it, which httptools leaves and RFC 9110 section 5.5 excludes."""
    value = headers.get(name)
    return None if value is None else value.strip(" \t")


def _initialize(call: _Call) -> dict[str, Any]:
    requested = call.params.get("protocolVersion")
    # a version that is not known is answered with ours, and the client decides whether it goes on
    version = requested if requested in _EARLIER else LEGACY
    return {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _SERVER}


def _ping(_call: _Call) -> dict[str, Any]:
    return {}


def _discover(_call: _Call) -> dict[str, Any]:
    return {"supportedVersions": [MODERN], "capabilities": _CAPABILITIES}


def _list_tools(_call: _Call) -> dict[str, Any]:
    return {"tools": tools.TOOLS}


def _call_tool(call: _Call) -> dict[str, Any]:
    name = call.params.get("name")
    arguments = call.params.get("arguments") or {}
    # an earlier era has every JSON-RPC error in a 200
    status = 400 if call.modern else 200
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _Error(status, INVALID_PARAMS, "name must be text and arguments an object")
    if call.modern and _header(call.headers, "mcp-name") != name:
        raise _mismatch()
    try:
        return {**tools.call(name, arguments, call.overview), "isError": False}
    except tools.NoSuchTool:
        raise _Error(status, INVALID_PARAMS, f"unknown tool {name[:100]}") from None
    except tools.BadArguments as bad:
        return {"content": [{"type": "text", "text": str(bad)}], "isError": True}


_METHODS = {
    "initialize": _Method(_initialize, modern=False),
    "ping": _Method(_ping, modern=False),
    "server/discover": _Method(_discover, legacy=False, cacheable=True),
    "tools/call": _Method(_call_tool),
    "tools/list": _Method(_list_tools, cacheable=True),
}

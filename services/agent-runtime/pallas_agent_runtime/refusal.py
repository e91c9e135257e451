"""An agent in a container that refuses its input: it says so over MCP for a moment, so that the registry hears it.

Its process ends all the same, with the exit code that an orchestrator counts and backs off from.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pallas_contract import names
from pallas_contract.documents import reason
from pallas_contract.fleet import source
from pallas_contract.launch import credentials
from pallas_contract.problems import Problem, Refused
from pallas_contract.validate import load
from pallas_service.http import sockets
from pallas_service.http.shutdown import HttpServer

SECONDS = 10.0
"""Long enough for two rounds of probes at the default interval."""
UNTOLD = "the agent refused its input; its log says what is wrong"
_SERVER_ERROR = -32000
"""First of the codes that JSON-RPC 2.0 leaves to servers."""
_MOST = 64 * 1024
"""Bytes of a request that are read, for its id."""


def protected(path: Path, name: str) -> bool:
    """Return whether agent `name` of the fleet file `path` asks its callers for a token, as far as can be told.

    A file that cannot be read, or has no such agent, may have meant to.
    """
    try:
        fleet = load.parse(source.read(path))
    except Refused:
        return True
    return name not in fleet.agents or credentials.protected(fleet, name)


def explain(
    problems: Iterable[Problem], environ: Mapping[str, str], *, secretive: bool, seconds: float = SECONDS
) -> None:
    """Answer on PALLAS_BIND with the first of `problems` for `seconds`; nothing where nobody would ask.

    `secretive` answers with `UNTOLD` instead: no token can be checked at that point, so whoever asks may be anybody.
    """
    message = next((str(problem).partition("\n")[0] for problem in sorted(problems) if problem.level == "error"), "")
    if message and secretive:
        message = UNTOLD
    host, _, port = environ.get(names.ENV_BIND, "").rpartition(":")
    if environ.get(names.ENV_PLACEMENT) != "container" or not message or not host or not port.isdecimal():
        return
    own_names = [name for name in environ.get(names.ENV_LISTEN_ON, "").split(",") if name]
    with contextlib.suppress(sockets.CannotListen), sockets.bound(host.strip("[]"), int(port), own_names) as listeners:
        asyncio.run(_serve(app(message), listeners, seconds))


async def _serve(application: ASGIApp, listeners: list[Any], seconds: float) -> None:
    for listener in listeners:
        sockets.start(listener)
    server = HttpServer(application)
    serving = asyncio.create_task(server.serve(listeners))
    await _pause(seconds)
    server.end()
    await serving


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


def app(message: str) -> ASGIApp:
    """Return the application that answers each MCP request with the error `message`, and is not ready."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response: Response
        if request.url.path == names.MCP_PATH and request.method == "POST":
            error = {"code": _SERVER_ERROR, "message": message, "data": {"reason": reason.INPUT_REFUSED}}
            response = JSONResponse({"jsonrpc": "2.0", "id": await _id(request), "error": error})
        else:
            status = 200 if request.url.path == names.LIVE_PATH else 503
            response = JSONResponse({"status": "error", "message": message}, status_code=status)
        await response(scope, receive, send)

    return answer


async def _id(request: Request) -> str | int | None:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST:
            return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if isinstance(request_id, str | int) else None

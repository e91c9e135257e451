"""The HTTP API of confirmations, behind the gate: what waits for a caller's word, and its word."""

from __future__ import annotations

import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pallas_gateway.confirmation.decisions import STATES, Decisions
from pallas_gateway.policy import policy
from pallas_service.access.caller import caller
from pallas_service.sqlite_file import CannotStore

PATH = "/confirmations"
_MOST = 1 << 10
"""Bytes of a decision."""
_FRESH = {"cache-control": "no-store"}


class _Written(JSONResponse):
    """JSON in ASCII: a string of a model may have no form in UTF-8, and a reader sees each character that it has."""

    def render(self, content: Any) -> bytes:
        """Return the text."""
        return json.dumps(content, allow_nan=False).encode()


class Api:
    """The API. Callers decide under the names that the policy has for them."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    def app(self) -> Starlette:
        """Return the application."""
        routes = [
            Route(PATH, self._list, methods=["GET"]),
            Route(f"{PATH}/{{id}}", self._show, methods=["GET"]),
            Route(f"{PATH}/{{id}}", self._decide, methods=["POST"]),
        ]
        app = Starlette(routes=routes)
        # A redirect is to http, whatever is in front: the next request, token and all, would be in clear.
        app.router.redirect_slashes = False
        return app

    async def _list(self, request: Request) -> Response:
        approver = _approver(request)
        try:
            pending = await self._decisions.pending(approver) if approver else []
        except CannotStore:
            return _unreadable()
        return _Written({"confirmations": pending}, headers=_FRESH)

    async def _show(self, request: Request) -> Response:
        approver = _approver(request)
        try:
            entry = await self._decisions.find(request.path_params["id"], approver) if approver else None
        except CannotStore:
            return _unreadable()
        return _unknown() if entry is None else _Written(entry, headers=_FRESH)

    async def _decide(self, request: Request) -> Response:
        approver = _approver(request)
        state = await _state(request)
        if state is None:
            text = 'send {"decision": "approve"} or {"decision": "refuse"} as application/json'
            return _error(400, "malformed", text)
        id_ = request.path_params["id"]
        try:
            if not approver or not await self._decisions.decide(id_, approver, state):
                return _unknown()
        except CannotStore:
            return _error(503, "confirmation_unavailable", "the state, or the audit, cannot be written")
        return JSONResponse({"id": id_, "state": state})


def _approver(request: Request) -> str:
    """Return what the caller is called as one who confirms; empty where nobody is verified."""
    verified = caller(request)
    return policy.principal_name(verified) if verified else ""


async def _state(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return None
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST:
            return None
    try:
        decision = json.loads(body)
    except ValueError:
        return None
    if not isinstance(decision, dict) or set(decision) != {"decision"} or not isinstance(decision["decision"], str):
        return None
    return STATES.get(decision["decision"])


def _unknown() -> Response:
    return _error(404, "unknown_confirmation", "there is no such confirmation that waits for this caller")


def _unreadable() -> Response:
    return _error(503, "confirmation_unavailable", "the state cannot be read")


def _error(status: int, reason: str, text: str) -> Response:
    return JSONResponse({"error": {"reason": reason, "message": text}}, status)

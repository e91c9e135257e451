"""The stream of server-sent events behind the page: what its viewer may see, sent again as it changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from pallas_contract import names
from pallas_gateway.confirmation.decisions import Decisions
from pallas_gateway.data_plane.shares import Streams, TooMany, owner
from pallas_gateway.policy.policy import Policy, principal_name
from pallas_gateway.tenants import Tenants
from pallas_gateway.watching.board import Board, Shown
from pallas_service.access.caller import Caller, caller
from pallas_service.sqlite_file import CannotStore

PATH = "/console/calls"
LASTS = 300.0
"""Seconds of a stream, after which the page asks anew: by then a token may be worth nothing."""
PAUSE = 1.0
"""Seconds between two events at least, however much happens."""
LOOK = 5.0
"""Seconds after which confirmations are read again: they expire, and another gateway may have decided one."""
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no", "x-content-type-options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Viewer:
    """A verified caller that looks, in `tenant` or none; None where nobody is asked for a token, and sees all."""

    caller: Caller | None
    tenant: str
    policy: Policy

    @property
    def name(self) -> str:
        """Return what it is called as one who confirms."""
        return principal_name(self.caller) if self.caller else ""

    def sees(self, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry is its own, its tenant's and of an agent that it knows, or decided by it."""
        if self.caller is None or self.policy.is_operator(self.caller):
            return True
        if self.name in (entry["principal"], entry.get("by")):
            return True
        agent = entry["agent"]
        known = agent == names.GATEWAY or self.policy.knows(self.caller, agent)
        return bool(self.tenant) and entry["tenant"] == self.tenant and known


class Feed:
    """ASGI of the stream, behind the gate; `confirmations` are None where nothing is confirmed."""

    def __init__(
        self,
        board: Board,
        policy: Policy,
        tenants: Tenants,
        streams: Streams,
        *,
        confirmations: Decisions | None = None,
        pause: float = PAUSE,
    ) -> None:
        self._board = board
        self._policy = policy
        self._tenants = tenants
        self._streams = streams
        self._confirmations = confirmations
        self._pause = pause
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        verified = caller(HTTPConnection(scope))
        allowance = self._tenants.of(verified)
        viewer = Viewer(verified, allowance.name if allowance else "", self._policy)
        if scope["method"] != "GET":
            return await JSONResponse({}, 405, headers={"allow": "GET"})(scope, receive, send)
        try:
            with self._streams.listening(owner(verified, allowance)):
                events = StreamingResponse(self._events(viewer), headers=_HEADERS, media_type="text/event-stream")
                await events(scope, receive, send)
        except TooMany as error:
            refusal = {"error": {"reason": "concurrency", "message": str(error)}}
            await JSONResponse(refusal, 429, headers={"retry-after": "1"})(scope, receive, send)

    def close(self) -> None:
        """End all streams, and begin no others."""
        self._closed = True
        self._board.wake()

    async def _events(self, viewer: Viewer) -> AsyncIterator[str]:
        board = self._board
        ends = board.clock() + LASTS
        shown: Shown | None = None
        waiting: object = None
        questions, looked = -1, 0.0
        while not self._closed and board.clock() < ends:
            if shown != (now := board.shown(viewer)):
                shown = now
                yield _event("calls", _written(shown, board.clock()))
            if questions != board.questions or board.clock() - looked >= LOOK:
                questions, looked = board.questions, board.clock()
                pending = await self._pending(viewer)
                if waiting != (kept := _lasting(pending)):
                    waiting = kept
                    yield _event("confirmations", pending)
                else:
                    yield ": still here\n\n"  # who has hung up is noticed by writing
            await board.change(LOOK)
            await asyncio.sleep(self._pause)

    async def _pending(self, viewer: Viewer) -> dict[str, Any]:
        """Return what waits for the viewer's word; `problem` says why that cannot be read."""
        if self._confirmations is None or not self._policy.may_confirm(viewer.caller):
            return {"may": False, "entries": []}
        try:
            entries = await self._confirmations.pending(viewer.name)
        except CannotStore:
            return {"may": True, "entries": [], "problem": "the state cannot be read"}
        return {"may": True, "entries": [_exact(entry) for entry in entries]}


def _exact(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry whose arguments are text: a browser reads numbers of more than 53 bits as others."""
    asked = {key: entry[key] for key in ("arguments", "more") if key in entry}
    rest = {key: value for key, value in entry.items() if key not in asked}
    return {**rest, "text": json.dumps(asked, indent=2)} if asked else rest


def _lasting(pending: Mapping[str, Any]) -> object:
    """Return what of an event has to change before it is sent again: not the seconds that are left."""
    entries = [{**entry, "expires_in": None} for entry in pending["entries"]]
    return {**pending, "entries": entries}


def _written(shown: Shown, clock: float) -> dict[str, Any]:
    calls = [
        {**{key: value for key, value in entry.items() if key != "began"}, "seconds": round(clock - entry["began"], 1)}
        for entry in shown.calls
    ]
    return {"under_way": shown.under_way, "calls": calls, "refused": shown.refused, "confirmed": shown.confirmed}


def _event(kind: str, data: Mapping[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"

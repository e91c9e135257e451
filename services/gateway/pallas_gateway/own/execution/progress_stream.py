"""Progress of a graph as server-sent events before its answer, for clients that ask for it as MCP does."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request
from starlette.types import Send

from pallas_gateway.data_plane import errors
from pallas_gateway.data_plane.answer import Answer
from pallas_gateway.own.execution.envelope import Envelope
from pallas_gateway.own.peers.peer import Progress

_HEAD = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class ProgressStream:
    """The stream that answers one request; it begins with the first progress, so that an error before is no stream."""

    def __init__(self, send: Send) -> None:
        self._answer = Answer(send)
        self._one_by_one = asyncio.Lock()
        self._token: str | int = ""
        self.begun = False

    def opened(self, request: Request, message: dict[str, Any], head: Envelope) -> Progress | None:
        """Return what tells of progress; None where the client has no `progressToken`, or takes no events."""
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        takes_events = "text/event-stream" in request.headers.get("accept", "")
        if not head.head or not takes_events or isinstance(token, bool) or not isinstance(token, str | int):
            return None
        self._token = token
        return self._report

    async def _report(self, progress: float, total: float | None, text: str | None) -> None:
        params = {"progressToken": self._token, "progress": progress, "total": total, "message": text}
        async with self._one_by_one:  # tasks end side by side
            if not self.begun:
                self.begun = True
                await self._answer.begin(200, _HEAD, stream=True)
            await self._event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    async def end(self, answer: dict[str, Any]) -> None:
        """Send the answer, as the last event."""
        await self._event(answer)
        await self._answer.end()

    async def _event(self, message: dict[str, Any]) -> None:
        await self._answer.piece(errors.event(json.dumps(message).encode()))

"""Sessions of the handshake era: their owners, and the one that ends where there is no room.

The SDK refuses one more than its limit, so that whoever opens a thousand of them and asks nothing keeps everybody else
out until they expire. Here one that nobody uses makes room for one that somebody wants.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_agent_runtime.web.owners import owner
from pallas_service.access.caller import caller

IDLE_SESSION = 1800.0
"""Seconds after which a session of the handshake era is closed."""
SESSIONS = 1_000
"""Most of them at once. Each is a task and its queues."""
SHARE = 10
"""A caller with a tenth of them or less loses none to others while somebody has more."""
RETRY_AFTER = 5
LARGEST_READ = 1 << 20
"""Bytes of a body that is read here for its id: reading one of many images twice would cost tens of milliseconds."""
_ID = "mcp-session-id"
_OPENING = 2
"""Messages of a client that has said hello and nothing else: `initialize` and `notifications/initialized`."""


@dataclass(slots=True)
class _Session:
    owner: str
    end: Scope = field(repr=False)
    """The request that ends it."""
    used: float
    messages: int = 1
    working: int = 0
    """Calls under way."""
    ids: set[str] = field(default_factory=set)
    """Of the requests under way, as text: each may be used once in a session (MCP 2025-11-25, Requests), and to the
    transport 1 and "1" are one."""
    listening: int = 0
    """Open streams: a use, but no reason to keep others out by the thousand."""


class Sessions:
    """ASGI around the transport. `most` sessions at once, forgotten after `idle` seconds as the transport does.

    A caller is who the token says, or an address where nobody is asked for a token.
    """

    def __init__(
        self,
        app: ASGIApp,
        most: int = SESSIONS,
        idle: float = IDLE_SESSION,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._most = most
        self._idle = idle
        self._clock = clock
        self._open: dict[str, _Session] = {}
        self.ended = 0
        """The number of those ended to make room."""
        self.refused = 0
        """The number of those not opened, because all others had requests under way."""

    def __len__(self) -> int:
        self._forget()
        return len(self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if headers.get("mcp-protocol-version", "") not in ("", *HANDSHAKE_PROTOCOL_VERSIONS):
            await self._app(scope, receive, send)
        elif _ID in headers and not self._may_use(scope, headers[_ID]):
            await _not_found()(scope, receive, send)
        elif headers.get(_ID, "") in self._open:
            await self._use(scope, receive, send, key=headers[_ID])
        elif _ID in headers:
            await self._app(scope, receive, send)
        elif len(self) >= self._most and not self._idle_ones():
            self.refused += 1
            error = {"code": INTERNAL_ERROR, "message": "too many sessions have requests under way"}
            body = {"jsonrpc": "2.0", "id": None, "error": error}
            await JSONResponse(body, 503, {"retry-after": str(RETRY_AFTER)})(scope, receive, send)
        else:
            await self._begin(scope, receive, send)

    def _may_use(self, scope: Scope, key: str) -> bool:
        """Return whether the session is the caller's, as far as somebody is asked who they are.

        The SDK compares tokens, and behind the gateway all callers have one.
        """
        session = self._open.get(key)
        return caller(HTTPConnection(scope)) is None or (session is not None and session.owner == owner(scope))

    async def _use(self, scope: Scope, receive: Receive, send: Send, *, key: str) -> None:
        session = self._open[key]
        request_ids: set[str] = set()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 404:
                self._open.pop(key, None)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                session.ids -= request_ids  # a client that has read the end may use the id again at once
                request_ids.clear()
            await send(message)

        listens = scope["method"] == "GET"
        posts = scope["method"] == "POST"
        if posts:
            body, receive = await _read(receive)
            number = _request_id(body)
            request_ids = set() if number is None else {str(number)}
            if number is not None and request_ids & session.ids:
                await _twice(number)(scope, receive, send)
                return
        session.messages += posts
        session.listening += listens
        session.working += not listens
        session.ids |= request_ids
        try:
            await self._app(scope, receive, watched)
        finally:
            session.listening -= listens
            session.working -= not listens
            session.ids -= request_ids
            session.used = self._clock()
        if scope["method"] == "DELETE":
            self._open.pop(key, None)

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            key = Headers(raw=message["headers"]).get(_ID) if message["type"] == "http.response.start" else None
            if key and message["status"] < 400:
                self._open[key] = _Session(owner(scope), _end(scope, key), self._clock())
                await self._make_room(key)
            await send(message)

        await self._app(scope, receive, watched)

    async def _make_room(self, newest: str) -> None:
        self._forget()
        while len(self._open) > self._most and (idle := [key for key in self._idle_ones() if key != newest]):
            has = Counter(session.owner for session in self._open.values())
            key = min(idle, key=lambda key: self._rank(self._open[key], has))
            self.ended += 1
            await self._app(self._open.pop(key).end, _nothing, _nobody)

    def _rank(self, session: _Session, has: Counter[str]) -> tuple[bool, bool, float]:
        """Return what says which session ends first: of callers above their share, never used, longest idle."""
        within = has[session.owner] <= max(1, self._most // SHARE)
        return within, session.messages > _OPENING or session.listening > 0, session.used

    def _idle_ones(self) -> list[str]:
        return [key for key, session in self._open.items() if not session.working]

    def _forget(self) -> None:
        old = self._clock() - self._idle
        for key in self._idle_ones():
            if self._open[key].used < old and not self._open[key].listening:
                del self._open[key]


def _end(scope: Scope, key: str) -> Scope:
    """Return the request by which the client itself would end the session."""
    headers = [(name, value) for name, value in scope["headers"] if name == b"host"]
    request: dict[str, Any] = {"method": "DELETE", "headers": [*headers, (_ID.encode(), key.encode())]}
    copied = ("type", "asgi", "http_version", "scheme", "path", "raw_path", "query_string", "server", "client", "user")
    return {name: scope[name] for name in copied if name in scope} | request


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """Return the body, and what gives it again; `body_limits` in front of this has bounded and read it."""
    messages = deque([await receive()])
    while messages[-1].get("more_body", False):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)

    async def again() -> Message:
        return messages.popleft() if messages else await receive()

    return body, again


def _request_id(body: bytes) -> str | int | None:
    """Return the JSON-RPC id of a request, None where there is none; the transport judges what is wrong."""
    if len(body) > LARGEST_READ:
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    number = message.get("id") if isinstance(message, dict) and "method" in message else None
    return number if isinstance(number, str | int) else None


def _twice(number: str | int) -> Response:
    error = {"code": INVALID_REQUEST, "message": "a request with this id is under way in this session"}
    return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, 400)


def _not_found() -> Response:
    """Return the SDK's answer for a session that it does not know."""
    error = {"code": INVALID_REQUEST, "message": "Session not found"}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 404)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nobody(message: Message) -> None:
    """Take the answer to our own request."""

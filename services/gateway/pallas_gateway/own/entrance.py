"""The way to `/mcp`: messages only, and no more of them in memory than there is room for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from mcp_types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_contract.json_values import has_more_values
from pallas_gateway.data_plane import shares
from pallas_gateway.data_plane.answer import Answer, Refused
from pallas_gateway.data_plane.message import Malformed, parse
from pallas_gateway.tenants import Tenants
from pallas_service.access.caller import caller
from pallas_service.http.bodies import BodyBudget, OverBudget, UploadAborted

MAX_BODY = 1 << 20
"""Bytes of a request."""
MOST_VALUES = 10_000
"""Arrays, objects and members of a request: no tool of the gateway's own takes more than a few."""
STREAMED = "pallas.streamed"
"""Key of the ASGI scope: whether the answer is a stream, in which progress can be told."""
SIZE = "pallas.size"
"""Key of the ASGI scope: bytes of the body."""
_PROGRESS = b'"progressToken"'
_ALLOW = ((b"allow", b"POST"),)
_AGAIN = ((b"retry-after", b"1"),)

Others = Callable[[Scope, Receive, Send, bytes], Awaitable[bool]]
"""Like an ASGI application, with the body that `receive` gives once more; False where it has done nothing."""


class Entrance:
    """ASGI in front of two transports: `app` answers in JSON, `streaming` tells of progress before.

    `others` answers what is no message of MCP, and says whether it was one.

    `bodies` is the budget of the whole gateway, `tenants` those of callers.

    The transports have no sessions, so they have nothing to say in a stream of their own: a client that asks for one is
    told so (405), and goes on without.
    """

    def __init__(
        self, app: ASGIApp, streaming: ASGIApp, others: Others, *, bodies: BodyBudget, tenants: Tenants
    ) -> None:
        self._app = app
        self._streaming = streaming
        self._others = others
        self._bodies = bodies
        self._tenants = tenants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._admit(scope, receive, send)
        except Refused as refused:
            await Answer(send).refuse(refused)
        except OverBudget:
            busy = Refused("busy", "too many large requests at once", status=503, headers=_AGAIN)
            await Answer(send).refuse(busy)
        except UploadAborted:
            return

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            raise Refused(
                "malformed", "there are no streams here: use POST", status=405, code=INVALID_REQUEST, headers=_ALLOW
            )
        declared = int(Headers(scope=scope).get("content-length") or 0)
        if declared > MAX_BODY:
            raise _too_large(f"{MAX_BODY} bytes")
        verified = caller(HTTPConnection(scope))
        owner = shares.owner(verified, self._tenants.of(verified))
        if not self._bodies.admits(declared, owner):
            raise OverBudget
        async with self._bodies.read(_bounded(receive), owner) as upload:
            body = b"".join(piece.get("body", b"") for piece in upload.pieces)
            upload.pieces.clear()
            if has_more_values(body, MOST_VALUES):
                raise _too_large(f"{MOST_VALUES} values")
            streamed = _PROGRESS in body and "text/event-stream" in Headers(scope=scope).get("accept", "")
            about = {STREAMED: streamed, SIZE: len(body)}
            upload.pieces.append({"type": "http.request", "body": body, "more_body": False})

            async def again() -> Message:
                return upload.pieces.popleft() if upload.pieces else await receive()

            if await self._others(scope, again, send, body):
                return
            _check(body)
            del body
            await (self._streaming if streamed else self._app)({**scope, **about}, again, send)


def _bounded(receive: Receive) -> Receive:
    """Return `receive` of a body that is refused once it has more than `MAX_BODY`."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            raise _too_large(f"{MAX_BODY} bytes")
        return message

    return bounded


def _check(body: bytes) -> None:
    """Refuse what is no message in the codes of seed 002: the transport calls all of that wrong parameters."""
    try:
        message = parse(body)
    except Malformed as error:
        raise Refused("malformed", str(error), status=400, code=error.code, request_id=error.id) from None
    if json.loads(body).get("jsonrpc") != "2.0":
        text = 'Invalid request: `jsonrpc` must be "2.0"'
        raise Refused("malformed", text, status=400, code=INVALID_REQUEST, request_id=message.id)


def _too_large(most: str) -> Refused:
    return Refused("too_large", f"request body too large: it may have {most}", status=413)

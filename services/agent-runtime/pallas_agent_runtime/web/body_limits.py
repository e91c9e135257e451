"""Refusals of the MCP transport before there is a message, in JSON-RPC and without its insides."""

from __future__ import annotations

import json
from typing import Any

from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_agent_runtime.web.owners import owner
from pallas_contract.json_values import has_more_values
from pallas_service.http.bodies import BodyBudget, OverBudget, Upload, UploadAborted

TOO_LARGE = 413
BAD = 400
SLACK = 64 << 10
"""Bytes of a request body beside the message and the images."""
MOST_VALUES = 100_000
"""Arrays, objects and their members of a request body; each takes thirty times its bytes once it is parsed."""


class Refusals:
    """ASGI around the transport.

    A body beyond the limit is refused before it is read, so its id is not known: JSON-RPC has `null` for that, and
    clients take it for the answer to what they sent. The SDK says it as plain text, of which a client can tell its user
    nothing. Of a body that is no JSON-RPC message the SDK quotes what pydantic thinks of it: that stays here. What is
    large takes from a budget for as long as its call is open, since the transport holds all of it; beyond, 503. No
    caller takes more of it than is left for all others, but for a single body.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        text = f"request body too large: message and images may have {limit} bytes together"
        self._too_large = _error(INVALID_REQUEST, text)
        self._limit = limit
        self._budget = BodyBudget(limit, most_read(limit))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        declared = int(Headers(scope=scope).get("content-length") or 0)
        if scope["method"] != "POST" or declared > most_read(self._limit):  # no body, or one that nobody reads
            await self._pass_on(scope, receive, send)
            return
        who = owner(scope)
        if self._budget.admits(declared, who):
            await self._read(scope, receive, send, who=who)
        else:
            await _busy(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, send: Send, *, who: str) -> None:
        """Read the body as far as the budget and its largest size go, then pass it on."""
        try:
            async with self._budget.read(receive, who) as upload:
                if _has_too_many_values(upload):
                    await _refuse_values(scope, receive, send)
                    return
                pieces = upload.pieces

                async def again() -> Message:
                    return pieces.popleft() if pieces else await receive()

                await self._pass_on(scope, again, send)
        except OverBudget:
            await _busy(scope, receive, send)
        except UploadAborted:
            return

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message | None = None
        body = b""

        async def rewrite(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and message["status"] in (TOO_LARGE, BAD):
                start = message
                return
            if start is None or message["type"] != "http.response.body":
                await send(message)
                return
            body += message.get("body", b"")
            if message.get("more_body", False):
                return
            whole = self._too_large if start["status"] == TOO_LARGE else _brief(body)
            headers = MutableHeaders(raw=start["headers"])
            headers["content-length"] = str(len(whole))
            if start["status"] == TOO_LARGE:
                headers["content-type"] = "application/json"
            await send(start)
            start = None
            await send({"type": "http.response.body", "body": whole})

        await self._app(scope, receive, rewrite)


def _has_too_many_values(upload: Upload) -> bool:
    sizes = (len(piece.get("body", b"")) for piece in upload.pieces)
    if sum(sizes) <= MOST_VALUES:
        return False
    return has_more_values(b"".join(piece.get("body", b"") for piece in upload.pieces), MOST_VALUES)


async def _refuse_values(scope: Scope, receive: Receive, send: Send) -> None:
    body = _error(INVALID_REQUEST, f"request body has more than {MOST_VALUES} values")
    await Response(body, TOO_LARGE, media_type="application/json")(scope, receive, send)


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    body = _error(INTERNAL_ERROR, "too many large requests at once")
    await Response(body, 503, {"retry-after": "1"}, "application/json")(scope, receive, send)


def most_read(limit: int) -> int:
    """Return how many bytes of a body are read, where message and images may have `limit` together.

    A little more is, so that the caller gets a tool error that names the field.
    """
    return limit + limit // 4 + SLACK


def _brief(body: bytes) -> bytes:
    """Return a refusal of the SDK without the quotation after its first words."""
    try:
        error: Any = json.loads(body)["error"]
        text = error["message"]
        code = error["code"]
    except (ValueError, TypeError, KeyError):
        return body
    if not isinstance(text, str) or not text.startswith("Validation error:"):
        return body
    return _error(code, "Validation error: the body is no JSON-RPC message")


def _error(code: int, text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}).encode()

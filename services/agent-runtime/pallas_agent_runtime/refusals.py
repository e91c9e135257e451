"""What the MCP transport refuses before there is a message, said in JSON-RPC and without its insides."""

from __future__ import annotations

import json
from typing import Any

from mcp_types import INVALID_REQUEST
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOO_LARGE, BAD = 413, 400


class Refusals:
    """ASGI around the transport.

    A body beyond the limit is refused before it is read, so its id is not known: JSON-RPC has `null` for that, and
    clients take it for the answer to what they sent. The SDK says it as plain text, of which a client can tell its user
    nothing. Of a body that is no JSON-RPC message the SDK quotes what pydantic thinks of it: that stays here.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        text = f"request body too large: message and images may have {limit} bytes together"
        self._too_large = _error(INVALID_REQUEST, text)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message | None = None
        body = b""

        async def said(message: Message) -> None:
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

        await self._app(scope, receive, said)


def _brief(body: bytes) -> bytes:
    """A refusal of the SDK without the quotation after its first words."""
    try:
        said: Any = json.loads(body)
        text, code = said["error"]["message"], said["error"]["code"]
    except (ValueError, TypeError, KeyError):
        return body
    if not isinstance(text, str) or not text.startswith("Validation error:"):
        return body
    return _error(code, "Validation error: the body is no JSON-RPC message")


def _error(code: int, text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}).encode()

"""A server of which a test says how it answers calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

Answer = Callable[[dict[str, Any]], Response]
"""The call -> what it is answered."""


class Notes:
    """A server of the handshake era; a call of a tool is answered by the entry of `ways` with its name."""

    def __init__(self, ways: dict[str, Answer], accepted: bytes = b"") -> None:
        """`accepted` is the body of what accepts a request on the old transport."""
        self._ways = ways
        self._accepted = accepted
        self._events: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        if request.method == "GET" and request.url.path == "/sse":
            answer: Response = StreamingResponse(self._stream(), media_type="text/event-stream")
        elif request.url.path == "/posts":
            message = await request.json()
            self._reply(message)
            answer = Response(self._accepted if "id" in message else b"", 202)
        else:
            answer = self._answer(request.method, json.loads(await request.body() or b"{}"))
        await answer(scope, receive, send)

    async def _stream(self) -> AsyncIterator[bytes]:
        yield b"event: endpoint\ndata: /posts\n\n"
        while True:
            yield await self._events.get()

    def _reply(self, message: dict[str, Any]) -> None:
        answer = self._answer("POST", message)
        if "id" in message:
            self._events.put_nowait(b"event: message\ndata: " + bytes(answer.body) + b"\n\n")

    def _answer(self, method: str, message: dict[str, Any]) -> Response:
        match message.get("method"):
            case "initialize":
                info = {"capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
                return self._result(message, {"protocolVersion": "2025-11-25", **info})
            case "tools/list":
                return self._result(
                    message, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self._ways]}
                )
            case "tools/call":
                return self._ways[message["params"]["name"]](message)
        if "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return Response(status_code=202 if message else 405)

    def _result(self, message: dict[str, Any], content: dict[str, Any]) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": content})

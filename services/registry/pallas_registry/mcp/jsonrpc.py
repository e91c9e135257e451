"""JSON-RPC 2.0 over HTTP POST: a body is parsed once, and one table says which handler answers its method."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


@dataclass(frozen=True, slots=True)
class Request:
    """A body that is JSON of any shape, and the HTTP headers by lower-case name."""

    headers: Mapping[str, str]
    message: Any


@dataclass(frozen=True, slots=True)
class Response:
    """An answer over HTTP; no body where `message` is None."""

    status: int
    message: dict[str, Any] | None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]
"""Checks the message and answers it; raises nothing for anything in it."""


async def dispatch(
    headers: Mapping[str, str], body: bytes, *, methods: Mapping[str, Handler], default: Handler
) -> Response:
    """Answer one POST by the handler of its method, or by `default` where there is none for it.

    `headers` are by lower-case name. Raises nothing for anything in the request.
    """
    try:
        message = json.loads(body)
        # Python reads NaN and half a surrogate pair, which could be neither answered nor published
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        error = {"code": PARSE_ERROR, "message": "not JSON"}
        return Response(400, {"jsonrpc": "2.0", "id": None, "error": error})
    method = message.get("method") if isinstance(message, dict) else None
    handler = methods.get(method, default) if isinstance(method, str) else default
    return await handler(Request(headers, message))

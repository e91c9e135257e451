"""Answers of the gateway itself: JSON-RPC errors whose `data.reason` says in a word what is wrong (decision 0022)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

Reason = Literal[
    "malformed",
    "header_mismatch",
    "unknown_tenant",
    "unknown_agent",
    "rate",
    "concurrency",
    "too_large",
    "busy",
    "unreachable",
    "interrupted",
    "timeout",
    "not_admitted",
    "failed",
    "unknown_function",
    "function_error",
    "unrecorded",
    "not_stored",
    "not_granted",
    "path_not_granted",
    "no_route",
    "confirmation_required",
    "confirmation_refused",
    "confirmation_unavailable",
]

UNKNOWN_TENANT = -32000
"""Tenant not found (seed 002, Custom Error Codes)."""
UNKNOWN_AGENT = -32001
"""Agent not found (seed 002, Custom Error Codes)."""
LIMITED = -32002
"""Rate limit exceeded (seed 002, Custom Error Codes)."""
NO_ANSWER = -32003
"""Timeout, or whatever else keeps an agent from answering (seed 002, Custom Error Codes)."""
CODES: dict[Reason, int] = {
    "unknown_tenant": UNKNOWN_TENANT,
    "unknown_agent": UNKNOWN_AGENT,
    "rate": LIMITED,
    "concurrency": LIMITED,
    "too_large": INVALID_REQUEST,
    "busy": INTERNAL_ERROR,
    "unreachable": NO_ANSWER,
    "interrupted": NO_ANSWER,
    "timeout": NO_ANSWER,
    "not_admitted": NO_ANSWER,
    "failed": NO_ANSWER,
    "unknown_function": INVALID_PARAMS,
    "function_error": INTERNAL_ERROR,
    "unrecorded": INTERNAL_ERROR,
    "not_stored": INTERNAL_ERROR,
    "not_granted": INVALID_PARAMS,
    "path_not_granted": INVALID_PARAMS,
    "no_route": UNKNOWN_AGENT,
    "confirmation_required": INVALID_REQUEST,
    "confirmation_refused": INVALID_REQUEST,
    "confirmation_unavailable": INTERNAL_ERROR,
}
"""JSON-RPC codes by reason; `malformed` and `header_mismatch` come with their own."""


def error(
    reason: Reason,
    text: str,
    request_id: str | int | None,
    *,
    code: int | None = None,
    data: Mapping[str, str | int] = MappingProxyType({}),
) -> bytes:
    """Return the message that answers request `request_id`, None where none is known; `data` stands beside `reason`."""
    body = {"code": CODES[reason] if code is None else code, "message": text, "data": {"reason": reason, **data}}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": body}).encode()


def event(message: bytes) -> bytes:
    """Return `message` as one server-sent event."""
    return b"event: message\ndata: " + message + b"\n\n"

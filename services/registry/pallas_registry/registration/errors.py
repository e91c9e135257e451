"""The errors of requests that cannot be granted: seed 003 section 6, with the codes that it leaves open.

The seed gives -32601, -32602, -32000 and -32001; those for credentials and limits are ours, below the range that MCP
keeps for itself (-32020 and beyond).
"""

from __future__ import annotations

from typing import Any

INVALID_PARAMS = -32602
UNAUTHORIZED, FORBIDDEN, UNREGISTERED, TOO_MANY, FULL, NOT_STORED = range(-32010, -32016, -1)


class Refusal(Exception):
    """A refused request: HTTP status, JSON-RPC code, words, and `data`; `wait` is seconds until another try."""

    def __init__(
        self, status: int, code: int, message: str, data: dict[str, Any] | None = None, *, wait: int = 0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.data = data or {}
        self.wait = wait

    def as_dict(self, agent: str) -> dict[str, Any]:
        """Return the `error` object (seed 003, section 6.1)."""
        return {"code": self.code, "message": str(self), "data": {"agent_id": agent or "unknown", **self.data}}

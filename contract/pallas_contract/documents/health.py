"""The health vocabulary: the answer of `get_health` (seed 000 section 2) and the states of an agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Status = Literal["ok", "degraded", "error"]
"""The answers of `get_health`."""
State = Literal["ok", "degraded", "error", "unauthenticated", "starting", "unknown"]
"""The states of an agent; `unauthenticated` is reachable but in need of credentials, `starting` not up for the first
time yet, `unknown` not probed yet."""

STATUSES: tuple[Status, ...] = ("ok", "degraded", "error")
GAUGE: dict[State, float] = {
    "ok": 1.0,
    "degraded": 0.5,
    "unauthenticated": 0.5,
    "starting": 0.5,
    "error": 0.0,
    "unknown": 0.0,
}
"""Value of `pallas_agent_health` (seed 000 section 3: 1.0, 0.5, 0.0)."""

TOOL = "get_health"
TOOL_DESCRIPTION = "Returns the health status of this agent and its downstream dependencies."
"""Seed 000 section 2, to the letter."""


@dataclass(frozen=True, slots=True)
class Health:
    """The answer of `get_health`; `message` is required unless `status` is ok."""

    status: Status
    timestamp: datetime
    message: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the answer as JSON has it; without `message` where there is none."""
        answer = {"status": self.status, "timestamp": timestamp(self.timestamp)}
        return answer | {"message": self.message} if self.message else answer

    def as_json(self) -> str:
        """Return the answer as JSON text."""
        # Not escaped: people read this text in logs and in their client.
        return json.dumps(self.as_dict(), ensure_ascii=False)


def timestamp(moment: datetime) -> str:
    """Return the moment in ISO 8601, UTC, to the second, as the seed writes it: `2026-03-12T15:42:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> tuple[Status, str] | None:
    """Return status and message of a `get_health` answer; None when it is not one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.get("status") not in STATUSES:
        return None
    message = data.get("message")
    return data["status"], message if isinstance(message, str) else ""

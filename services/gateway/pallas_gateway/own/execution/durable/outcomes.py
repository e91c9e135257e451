"""Outcomes of tasks as text, so that they are the same after a restart."""

from __future__ import annotations

import json
from typing import Any

from mcp.shared.exceptions import MCPError

from pallas_gateway.own.execution.scheduler import Outcome
from pallas_gateway.own.failures import Failed


def written(outcome: Outcome) -> str:
    """Return an outcome as JSON."""
    value: dict[str, Any] = {"status": outcome.status, "milliseconds": outcome.milliseconds, "result": outcome.result}
    if outcome.error is not None:
        error = outcome.error.error
        reason = outcome.error.reason if isinstance(outcome.error, Failed) else None
        value["error"] = {"reason": reason, "code": error.code, "message": error.message, "data": error.data}
    return json.dumps(value)


def read(text: str) -> Outcome:
    """Return the outcome that `written` made."""
    value = json.loads(text)
    error = _error(value["error"]) if "error" in value else None
    return Outcome(value["status"], value["result"], error, value["milliseconds"])


def _error(value: dict[str, Any]) -> MCPError:
    if value["reason"] is None:
        return MCPError(value["code"], value["message"], value["data"])
    failure = Failed(value["reason"], value["message"])
    failure.error.data = value["data"]
    return failure

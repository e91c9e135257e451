"""`agent.execute` of the gateway (docs/gateway.md): one function of an agent, or a graph of them."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

SECONDS = 240
"""As long as the tenant of agents.yaml may take."""
REFUSED = (-32601, -32602)
"""No such function, and invalid params (seed 003, section 6.2)."""


class Failed(Exception):
    """A request that the gateway or an agent did not fulfil; `refused` says that nothing of it has run."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


def execute(gateway: str, task_id: str, **params: Any) -> Any:
    """Return the result of one `agent.execute`: `agent_id`, `function` and `input`, or `tasks`.

    Raises:
        Failed: there is none.
    """
    try:
        body = _body(f"{gateway}/mcp", {"method": "agent.execute", "params": {**params, "meta": {"task_id": task_id}}})
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Failed(f"no gateway at {gateway} ({error}): start the fleet with `pallas`") from None
    try:
        return _result(json.loads(body))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise Failed(f"what answers at {gateway} is no gateway: {body[:80].decode(errors='replace')!r}") from None


def _body(url: str, message: dict[str, Any]) -> bytes:
    """Return what answers a message, whatever its status."""
    request = urllib.request.Request(url, json.dumps(message).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        return error.read()


def _result(answer: dict[str, Any]) -> Any:
    if "error" not in answer:
        return answer["result"]
    error = answer["error"]
    data = error["data"]
    where = data.get("task_id") or data.get("field") or data["agent_id"]
    raise Failed(f"{where}: {error['message']} ({error['code']})", refused=error["code"] in REFUSED)

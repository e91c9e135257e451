"""The envelope of `agent.execute` (seed 003, section 3.1), which may have `jsonrpc` and `id` or neither."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pallas_gateway.data_plane.errors import Reason
from pallas_gateway.own.failures import Failed, invalid_arguments

METHOD = "agent.execute"
FUNCTION_ERROR = -32000
"""Agent function error (seed 003, section 6.2)."""
NO_ANSWER = -32001
"""Timeout or unreachable (seed 003, section 6.2)."""
LIMITED = -32013
"""Too many requests, as the registry has it for the other messages of seed 003."""
CODES: dict[Reason, int] = {
    "unknown_tenant": INVALID_PARAMS,
    "unknown_agent": INVALID_PARAMS,
    "rate": LIMITED,
    "concurrency": LIMITED,
    "too_large": INVALID_REQUEST,
    "busy": INTERNAL_ERROR,
    "unreachable": NO_ANSWER,
    "interrupted": NO_ANSWER,
    "timeout": NO_ANSWER,
    "not_admitted": NO_ANSWER,
    "failed": NO_ANSWER,
    "unknown_function": METHOD_NOT_FOUND,
    "function_error": FUNCTION_ERROR,
    "unrecorded": INTERNAL_ERROR,
    "not_stored": INTERNAL_ERROR,
    "not_granted": METHOD_NOT_FOUND,
    "path_not_granted": INVALID_PARAMS,
    "no_route": INVALID_PARAMS,
    "confirmation_required": INVALID_REQUEST,
    "confirmation_refused": INVALID_REQUEST,
    "confirmation_unavailable": INTERNAL_ERROR,
}
"""JSON-RPC codes by reason (decision 0022, Errors)."""

_SHOWN = 200
"""Characters of the name of an agent from outside that are shown."""
TASK_ID = r"^[A-Za-z0-9._-]{1,64}$"


class Malformed(MCPError):
    """A message that is none of this method's; HTTP 400."""


Name = Annotated[str, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """Parameters without any that nobody knows."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Meta(Strict):
    """`meta` of a request. Agents read `task_id` as the id of the task, so it is one of theirs."""

    task_id: str = Field(pattern=TASK_ID)
    timestamp: str | None = Field(default=None, max_length=64)
    tenant_id: str | None = Field(default=None, min_length=1, max_length=64)


class Params(Strict):
    """`params` of a request; `_meta` is MCP's."""

    agent_id: Name
    function: Name
    input: dict[str, Any] = Field(default_factory=dict)
    meta: Meta
    mcp: Any = Field(default=None, alias="_meta")


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an answer has besides: `jsonrpc` and `id` where the request had them, `agent` where it named one."""

    head: dict[str, Any]
    agent: str = ""

    def answer(self, result: dict[str, Any], milliseconds: int) -> dict[str, Any]:
        """Return the answer with the result of a function."""
        return {**self.head, "result": result, "meta": {"status": "success", "execution_time_ms": milliseconds}}

    def refusal(self, error: MCPError) -> dict[str, Any]:
        """Return the answer with an error (seed 003, section 6.1), in this seed's codes."""
        code = CODES[error.reason] if isinstance(error, Failed) else error.error.code
        data = {"agent_id": self.agent, **(error.error.data if isinstance(error.error.data, dict) else {})}
        return {**self.head, "error": {"code": code, "message": error.error.message, "data": data}}


def envelope(message: dict[str, Any]) -> Envelope:
    """Return the envelope of the answer to `message`, which is JSON-RPC 2.0 or has neither `jsonrpc` nor `id`.

    Raises:
        Malformed: it is a notification, or has one of the two in another form.
    """
    params = message.get("params")
    agent_id = params.get("agent_id") if isinstance(params, dict) else None
    agent = agent_id[:_SHOWN] if isinstance(agent_id, str) else ""
    if not message.keys() & {"jsonrpc", "id"}:
        return Envelope({}, agent)
    request_id = message.get("id")
    if message.get("jsonrpc") != "2.0" or isinstance(request_id, bool) or not isinstance(request_id, str | int):
        text = "Invalid request: JSON-RPC 2.0 with an id, or neither `jsonrpc` nor `id`"
        raise Malformed(INVALID_REQUEST, text, {"reason": "malformed"})
    return Envelope({"jsonrpc": "2.0", "id": request_id}, agent)


def checked[P: Strict](model: type[P], message: dict[str, Any]) -> P:
    """Return the parameters of a request.

    Raises:
        MCPError: one is wrong, or there is none where one must be.
    """
    try:
        return model.model_validate(message.get("params"))
    except ValidationError as error:
        raise invalid_arguments(error) from None


def encoded(answer: dict[str, Any]) -> bytes:
    """Return an answer as JSON."""
    return json.dumps(answer).encode()

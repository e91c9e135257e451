"""Who thinks for the agents of users: the agent `runner` of the fleet, or in a test a stand-in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from percolate.problems import Problem

_PATIENCE = 60
"""Seconds for one message of the runner; who asks has a deadline of their own."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the runner is to be, and to answer, for whom, with which tools."""

    instruction: str
    prompt: str
    tools: Sequence[str]
    tenant_id: str


class Runner(Protocol):
    """Whoever answers tasks."""

    async def run(self, task: Task) -> str:
        """Return the text of the answer.

        Raises:
            Problem: there is none.
        """


class Agent:
    """The runner of the fleet, at an MCP endpoint."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def run(self, task: Task) -> str:
        """Return what it answers to a task."""
        message = {"message": json.dumps(asdict(task))}
        try:
            async with (
                httpx2.AsyncClient(timeout=_PATIENCE, trust_env=False) as http,
                Client(streamable_http_client(self._url, http_client=http)) as client,
            ):
                reply = await client.call_tool("send_message", message)
        except (MCPError, httpx2.HTTPError, OSError, ExceptionGroup) as error:
            raise Problem(f"the runner gives no answer: {_reason(error)}") from None
        text = "\n".join(block.text for block in reply.content if hasattr(block, "text"))
        if reply.is_error:
            raise Problem(f"the runner failed: {text[:500]}")
        return text


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {str(error)[:200]}"


class StandIn:
    """Answers without a model: the least that fits a schema of plain values, and the prompt where a text is wanted."""

    async def run(self, task: Task) -> str:
        """Return an object with all properties of the schema, which ends the instruction."""
        schema = json.loads(task.instruction.rpartition("\n")[2])
        properties: Mapping[str, Any] = schema.get("properties", {})
        values = {"string": task.prompt, "number": 0.5, "integer": 1, "boolean": True, "array": [], "object": {}}
        return json.dumps({name: values.get(str(entry.get("type"))) for name, entry in properties.items()})

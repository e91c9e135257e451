"""fast-agent's tool events -> the progress lines of seed 000 section 4, best effort and strictly increasing."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

Report = Callable[[float, float | None, str], Awaitable[None]]
"""Sends one notification: progress, total (None while indeterminate), message."""

_LOOP = "agent_loop"
"""The pseudo tool under which fast-agent reports its own steps, as `step 3 (tool name)` or `step 1 (llm)`."""

_FUNCTIONS = "local"
"""The pseudo server of fast-agent's function tools."""

log = structlog.get_logger(__name__)


class Progress:
    """One call's progress. It has the methods of fast-agent's `ToolExecutionHandler` protocol.

    `renamed` maps fast-agent's name of an agent to the fleet's; `subagents` are the servers that are agents, whose
    tools the seed labels `{server}/{server}__{tool}`. `forwarded` are servers whose tools are functions to fast-agent.
    """

    def __init__(
        self,
        report: Report,
        renamed: dict[str, str],
        subagents: frozenset[str],
        forwarded: frozenset[str] = frozenset(),
    ) -> None:
        self._report = report
        self._renamed = renamed
        self._subagents = subagents
        self._forwarded = forwarded
        self._count = 0
        self._calls: dict[str, tuple[str, str]] = {}

    async def on_tool_start(
        self, tool_name: str, server_name: str, arguments: dict[str, Any] | None, tool_use_id: str | None = None
    ) -> str:
        call = tool_use_id or uuid.uuid4().hex
        server, _, tool = tool_name.partition("__")
        if server_name == _FUNCTIONS and server in self._forwarded:
            server_name = server
            tool_name = tool
        self._calls[call] = (server_name, tool_name)
        if tool_name != _LOOP:
            await self._send(f"{self._label(server_name, tool_name)}: started")
        return call

    async def on_tool_progress(
        self, tool_call_id: str, progress: float, total: float | None, message: str | None
    ) -> None:
        server, tool = self._calls.get(tool_call_id, ("", ""))
        if tool == _LOOP:
            step, _, kind = (message or "").partition(" (")
            await self._send(f"{self._name(server)} {step} ({'llm' if kind.startswith('llm') else 'tool'})")
        else:
            await self.passed_on(progress, total, message)

    async def step(self, agent: str, number: int) -> None:
        """Send the line of a request to its model that fast-agent does not report."""
        await self._send(f"{self._name(agent)} step {number} (llm)")

    async def passed_on(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a line of the called agent; the numbers are this call's own, what is finished there is so here."""
        if message:
            await self._send(message, finished=total is not None and progress >= total)

    async def on_tool_complete(
        self, tool_call_id: str, success: bool, content: list[Any] | None, error: str | None
    ) -> None:
        server, tool = self._calls.pop(tool_call_id, ("", ""))
        if tool and tool != _LOOP:
            outcome = "completed" if success else "failed"
            await self._send(f"{self._label(server, tool)}: {outcome}", finished=True)

    async def on_tool_permission_denied(
        self, tool_name: str, server_name: str, tool_use_id: str | None, error: str | None = None
    ) -> None:
        await self._send(f"{self._label(server_name, tool_name)}: failed", finished=True)

    async def get_tool_call_id_for_tool_use(self, tool_use_id: str) -> str | None:
        return tool_use_id if tool_use_id in self._calls else None

    async def ensure_tool_call_exists(
        self, tool_use_id: str, tool_name: str, server_name: str, arguments: dict[str, Any] | None = None
    ) -> str:
        return tool_use_id

    def _name(self, agent: str) -> str:
        return self._renamed.get(agent, agent)

    def _label(self, server: str, tool: str) -> str:
        return f"{server}/{server}__{tool}" if server in self._subagents else f"{server}/{tool}"

    async def _send(self, message: str, *, finished: bool = False) -> None:
        """Send one line. `total` equals `progress` on what is finished (seed 000, Rendering Guidance).

        The value never repeats.
        """
        self._count += 1
        try:
            await self._report(float(self._count), float(self._count) if finished else None, message)
        except Exception as error:  # best effort: the agent's work does not stop for a lost notification
            log.debug("progress_lost", error=type(error).__name__)

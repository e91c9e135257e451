"""Agents whose answers come from code. To the fleet they are like any other: the same tools, health and progress."""

from __future__ import annotations

import json
import socket
from abc import abstractmethod
from contextvars import ContextVar
from typing import Any

from fast_agent import McpAgent, Prompt, PromptMessageExtended, RequestParams
from fast_agent.core.exceptions import FastAgentError
from fastmcp.tools import FunctionTool

_params: ContextVar[RequestParams | None] = ContextVar("params", default=None)
"""Those of the call that is being answered: what it calls in its turn reports its progress by them."""


class Coded(McpAgent):
    """Answers with what `answer` returns, as JSON. A FastAgentError becomes a tool error to the caller."""

    @abstractmethod
    async def answer(self, text: str) -> Any:
        """Return the answer to a message, as something JSON can hold."""

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Return the JSON that a tool answers with, be it a source's or another agent's."""
        reply = await self.call_tool(tool, arguments)
        text = reply.content[0].text
        if reply.is_error:
            raise FastAgentError(text)
        return json.loads(text)

    async def call_tool(
        self, name: str, arguments: Any = None, tool_use_id: Any = None, *, request_params: Any = None
    ) -> Any:
        """Call a tool, with the parameters of the call that is being answered where it has none of its own."""
        token = _params.set(request_params or _params.get())
        try:
            return await super().call_tool(name, arguments, tool_use_id, request_params=_params.get())
        finally:
            _params.reset(token)

    async def generate_impl(
        self, messages: list[PromptMessageExtended], request_params: RequestParams | None = None, tools: Any = None
    ) -> PromptMessageExtended:
        """Answer as a model would be asked to."""
        token = _params.set(request_params)
        try:
            return Prompt.assistant(json.dumps(await self.answer(messages[-1].all_text())))
        finally:
            _params.reset(token)


class DataAgent(Coded):
    """Has functions for callers: methods of a subclass, whose types are the schema of their input.

    `agents.yaml` names them too (`functions`). As a message they are called by their name:
    {"function": "fetch_ohlcv", "input": {"symbol": "ACME"}} -> {"result": ..., "by": "binance_agent on HOST"}
    """

    functions: tuple[str, ...] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in self.functions:
            self.add_tool(FunctionTool.from_function(getattr(self, name)))

    async def answer(self, text: str) -> Any:
        """Return the result of the function that a message names."""
        try:
            task = json.loads(text)
            name, arguments = task["function"], task["input"]
        except (ValueError, TypeError, KeyError):
            raise FastAgentError(f"{self.name}: send function and input as JSON") from None
        if name not in self.functions:
            raise FastAgentError(f"{self.name}: no function {name!r}, only {', '.join(self.functions)}")
        return {"result": await self.call(name, **arguments), "by": f"{self.name} on {socket.gethostname()}"}

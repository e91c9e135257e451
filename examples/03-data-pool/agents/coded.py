"""Agents whose answers come from code. To the fleet they are like any other: the same tools, health and progress."""

from __future__ import annotations

import inspect
import json
import socket
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from fast_agent import McpAgent, Prompt, PromptMessageExtended, RequestParams
from fast_agent.core.exceptions import FastAgentError

Call = Callable[..., Awaitable[Any]]
"""`await call(tool, **arguments)`: the JSON that a tool answers with, be it a source's or another agent's."""


class Coded(McpAgent):
    """Answers with what `answer` returns, as JSON. A FastAgentError becomes a tool error to the caller."""

    @abstractmethod
    async def answer(self, text: str, call: Call) -> Any:
        """What it says to `text`, as something JSON can hold."""

    async def generate_impl(
        self, messages: list[PromptMessageExtended], request_params: RequestParams | None = None, tools: Any = None
    ) -> PromptMessageExtended:
        """What a model would be asked for."""

        async def call(tool: str, **arguments: Any) -> Any:
            reply = await self.call_tool(tool, arguments, request_params=request_params)  # these carry the progress
            text = reply.content[0].text
            if reply.is_error:
                raise FastAgentError(text)
            return json.loads(text)

        return Prompt.assistant(json.dumps(await self.answer(messages[-1].all_text(), call)))


class DataAgent(Coded):
    """Runs the function that a message names, which is a method of a subclass.

    {"function": "fetch_ohlcv", "input": {"symbol": "ACME"}} -> {"result": ..., "by": "market_data on HOST"}
    """

    functions: tuple[str, ...] = ()
    """The methods that may be asked for."""

    async def answer(self, text: str, call: Call) -> Any:
        try:
            task = json.loads(text)
            name, given = task["function"], task["input"]
        except (ValueError, TypeError, KeyError):
            raise FastAgentError(f"{self.name}: send function and input as JSON") from None
        if name not in self.functions:
            raise FastAgentError(f"{self.name}: no function {name!r}, only {', '.join(self.functions)}")
        function = getattr(self, name)
        try:
            bound = inspect.signature(function).bind(call, **given)
        except TypeError as error:
            raise FastAgentError(f"{self.name}: {name}: {error}") from None
        return {"result": await function(*bound.args), "by": f"{self.name} on {socket.gethostname()}"}

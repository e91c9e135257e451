"""Questions of an agent's tools and MCP servers to a human: they go to the caller of the turn, never to a terminal.

fast-agent would ask where the agent was started, where nobody is. Instead of its tool `__human_input` an agent has
`human_input`, which takes the same forms, and a server's elicitation has a handler. Both find the caller by the
instance they belong to: a connection outlives the turns that it serves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import mcp_types as t
from fast_agent.config import get_settings
from fast_agent.tools.elicitation import (
    get_elicitation_fastmcp_tool,
    run_elicitation_form,
    set_elicitation_input_callback,
)
from fastmcp.tools import FunctionTool, ToolResult
from mcp.client.session import ClientRequestContext

from pallas_agent_runtime.calls.elicitation import CannotAsk, Elicit

TOOL = "human_input"
_SCHEMA = ("type", "properties", "required")
"""The keys of a form's schema that MCP lets it have."""
_DECLINED = "__DECLINED__"
_CANCELLED = "__CANCELLED__"


class Questions:
    """The way to the caller of an instance's turn, while it has one."""

    def __init__(self) -> None:
        self._elicit: Elicit | None = None

    @contextmanager
    def of_turn(self, elicit: Elicit) -> Iterator[None]:
        """Ask the caller of one turn."""
        self._elicit = elicit
        try:
            with self.connecting(""):
                yield
        finally:
            self._elicit = None

    @contextmanager
    def connecting(self, server: str) -> Iterator[None]:
        """Make what begins inside, such as the tasks of a connection, ask the caller of this instance."""
        token = _current.set((self, server))
        try:
            yield
        finally:
            _current.reset(token)

    async def ask(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        """Ask the caller.

        Raises:
            CannotAsk: no turn is under way, or its caller takes no such question.
        """
        if self._elicit is None:
            raise CannotAsk("no call is under way whose caller could be asked")
        return await self._elicit(params)


_current: ContextVar[tuple[Questions, str]] = ContextVar("pallas_questions")


def prepare(definitions: Mapping[str, Any]) -> frozenset[str]:
    """Take the terminal away from the agents of an application, and return those that want human input.

    A handler that the definition brings along stays: `elicitation_handler=`.
    """
    wanting = {name for name, data in definitions.items() if data["config"].human_input}
    for data in definitions.values():
        config = data["config"]
        config.human_input = False
        config.elicitation_handler = config.elicitation_handler or _elicited
    return frozenset(wanting)


def equip(agents: Mapping[str, Any], wanting: Iterable[str]) -> None:
    """Give the agents of an instance their tool."""
    original = get_elicitation_fastmcp_tool()
    for name in wanting:
        tool = _Tool(fn=_human_input, name=TOOL, description=original.description, parameters=original.parameters)
        agents[name].add_tool(tool)


class _Tool(FunctionTool):  # type: ignore[misc]  # fastmcp is not followed: see pyproject.toml
    """A function that takes the arguments as they are: fast-agent checks them."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        result: ToolResult = await self.fn(arguments)
        return result


async def _human_input(arguments: dict[str, Any]) -> ToolResult:
    # Every agent that fast-agent makes sets the terminal anew. Nothing runs between this line and the use of it.
    set_elicitation_input_callback(_answer)
    try:
        text = await run_elicitation_form(arguments)
    except (CannotAsk, ValueError) as error:  # ValueError is fast-agent's word for a form that is none
        return _result(f"No human can be asked: {error}", failed=True)
    return _result({_DECLINED: "The human declined to answer.", _CANCELLED: "The human cancelled."}.get(text, text))


async def _answer(request: dict[str, Any], *_: object) -> str:
    """Return the caller's answer in the form that fast-agent has for those of its terminal."""
    schema = {key: value for key, value in request["metadata"]["requested_schema"].items() if key in _SCHEMA}
    form = t.ElicitRequestFormParams(message=request["prompt"], requested_schema=schema)
    answer = await _current.get()[0].ask(form)
    if answer.action != "accept":
        return _DECLINED if answer.action == "decline" else _CANCELLED
    return json.dumps(answer.content or {}, ensure_ascii=False)


def _result(text: str, *, failed: bool = False) -> ToolResult:
    return ToolResult([t.TextContent(type="text", text=text)], is_error=failed)


async def _elicited(_: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
    """Answer the question of an MCP server: as the caller does, or as fast-agent's settings say (`elicitation`)."""
    questions, server = _current.get()
    mode = _mode(server)
    if mode == "auto-cancel":
        return t.ElicitResult(action="cancel")
    if mode == "none":
        return t.ErrorData(code=t.INVALID_REQUEST, message="elicitation is switched off")
    try:
        return await questions.ask(params)
    except CannotAsk as error:
        return t.ErrorData(code=t.INVALID_REQUEST, message=f"No human can be asked: {error}")


def _mode(server: str) -> str:
    settings = get_settings()
    entry = ((settings.mcp.servers if settings.mcp else None) or {}).get(server)
    return (entry.elicitation.mode if entry and entry.elicitation else "") or "forms"

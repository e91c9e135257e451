"""Questions of an agent's tools and MCP servers to a human: they go to the caller of the turn, never to a terminal.

fast-agent would ask where the agent was started, where nobody is. Instead of its tool `__human_input` an agent has
`human_input`, which takes the same forms, and a server's elicitation has a handler. The tool belongs to its turn, and
the question of a server to a request to it that is under way: a connection outlives the turns that it serves.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import mcp_types as t
from fast_agent.config import MCPServerSettings
from fast_agent.mcp.client_connection import MCPClientConnection
from fast_agent.tools.elicitation import (
    get_elicitation_fastmcp_tool,
    run_elicitation_form,
    set_elicitation_input_callback,
)
from fastmcp.tools import FunctionTool, ToolResult
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError

from pallas_agent_runtime.calls.elicitation import CannotAsk, Elicit

TOOL = "human_input"
_SCHEMA = ("type", "properties", "required")
"""The keys of a form's schema that MCP lets it have."""
_DECLINED = "__DECLINED__"
_CANCELLED = "__CANCELLED__"
_NO_CALL = "no call is under way whose caller could be asked"


class Questions:
    """The way to the caller of one turn, closed when the turn is over."""

    def __init__(self, elicit: Elicit) -> None:
        self._elicit: Elicit | None = elicit
        self.unanswered = 0
        """Requests to MCP servers under way, or given up: a server may still ask on account of them."""

    def close(self) -> None:
        """Ask nobody from now on, whatever the turn leaves behind."""
        self._elicit = None

    async def ask(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        """Ask the caller.

        Raises:
            CannotAsk: the turn is over, or its caller takes no such question.
        """
        if self._elicit is None:
            raise CannotAsk(_NO_CALL)
        return await self._elicit(params)


_current: ContextVar[Questions] = ContextVar("pallas_questions")


@contextmanager
def of_turn(elicit: Elicit) -> Iterator[Questions]:
    """Ask the caller of the turn that runs inside, and nobody after it."""
    questions = Questions(elicit)
    token = _current.set(questions)
    try:
        yield questions
    finally:
        questions.close()
        _current.reset(token)


_under_way: dict[ClientSession, list[tuple[Questions, MCPServerSettings | None]]] = {}
"""Of each connection the requests under way: whom their questions go to, and the configuration of the server."""


@contextmanager
def _request(connection: MCPClientConnection) -> Iterator[None]:
    """Let the server of `connection` ask the caller of this turn until its request is answered or given up."""
    questions = _current.get(None)
    if questions is None:
        yield
        return
    session = connection.session
    request = (questions, connection.callbacks.server_config)
    _under_way.setdefault(session, []).append(request)
    questions.unanswered += 1
    try:
        yield
    except Exception as error:  # one that is cancelled stays unanswered
        if not (isinstance(error, MCPError) and error.code == t.REQUEST_TIMEOUT):
            questions.unanswered -= 1
        raise
    else:
        questions.unanswered -= 1
    finally:
        _under_way[session].remove(request)
        if not _under_way[session]:
            del _under_way[session]


def _follow_requests() -> None:
    """Have every request that a server may ask back in say for which turn it is made.

    fast-agent hands a handler the connection alone, which outlives turns and is made anew for clones of agents.
    """
    for name in ("call_tool", "read_resource", "get_prompt"):
        original = getattr(MCPClientConnection, name)
        if not hasattr(original, "__wrapped__"):
            setattr(MCPClientConnection, name, _followed(original))


def _followed(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(original)
    async def method(connection: MCPClientConnection, *args: Any, **kwargs: Any) -> Any:
        with _request(connection):
            return await original(connection, *args, **kwargs)

    return method


def prepare(definitions: Mapping[str, Any]) -> frozenset[str]:
    """Take the terminal away from the agents of an application, and return those that want human input.

    A handler that the definition brings along stays: `elicitation_handler=`.
    """
    _follow_requests()
    wanting = {name for name, data in definitions.items() if data["config"].human_input}
    for data in definitions.values():
        config = data["config"]
        config.human_input = False
        config.elicitation_handler = config.elicitation_handler or _elicited
    return frozenset(wanting)


def equip(agents: Mapping[str, Any], wanting: Collection[str]) -> None:
    """Give the agents of an instance their tool."""
    if not wanting:  # to make fast-agent's imports FastMCP's server, which nothing else at the start needs
        return
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
    answer = await _current.get().ask(form)
    if answer.action != "accept":
        return _DECLINED if answer.action == "decline" else _CANCELLED
    return json.dumps(answer.content or {}, ensure_ascii=False)


def _result(text: str, *, failed: bool = False) -> ToolResult:
    return ToolResult([t.TextContent(type="text", text=text)], is_error=failed)


async def _elicited(context: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
    """Answer the question of an MCP server: as the caller does, or as fast-agent's settings say (`elicitation`)."""
    requests = _under_way.get(context.session)
    if not requests:
        return t.ErrorData(code=t.INVALID_REQUEST, message=f"No human can be asked: {_NO_CALL}")
    questions, settings = requests[-1]
    mode = settings.elicitation.mode if settings and settings.elicitation else "forms"
    if mode == "auto-cancel":
        return t.ElicitResult(action="cancel")
    if mode == "none":
        return t.ErrorData(code=t.INVALID_REQUEST, message="elicitation is switched off")
    try:
        return await questions.ask(params)
    except CannotAsk as error:
        return t.ErrorData(code=t.INVALID_REQUEST, message=f"No human can be asked: {error}")

"""The MCP surface of one agent: its tools and its history prompt, on the SDK's low-level server (both eras)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import mcp_types as t
import structlog
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from structlog.contextvars import bound_contextvars

from pallas_agent_runtime.calls import arguments as calls_arguments
from pallas_agent_runtime.calls import delegation, elicitation, models
from pallas_agent_runtime.calls.arguments import BadArgument, Question
from pallas_agent_runtime.calls.delegation import BadTask, Task, TooFar
from pallas_agent_runtime.calls.elicitation import Answer, Elicit, NotOpen, PausedTurns
from pallas_agent_runtime.calls.models import OtherModel
from pallas_agent_runtime.calls.progress import Report
from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.conversations import store
from pallas_agent_runtime.telemetry import spans
from pallas_contract.documents import health
from pallas_contract.documents.health import Health
from pallas_service.access.caller import Caller, caller
from pallas_service.http.disconnect import HungUp, attended

log = structlog.get_logger(__name__)

Context = ServerRequestContext[Any, Any]

Work = Callable[[Report | None, Elicit], Awaitable[Answer]]

_BEARER = re.compile(r"Bearer +(\S+) *", re.IGNORECASE)


class Agent(Protocol):
    """The engine, as far as the surface needs it."""

    async def ask(
        self, question: Question, key: str | None, report: Report | None, caller: Caller | None, *, elicit: Elicit
    ) -> str: ...
    async def call(
        self, name: str, arguments: Mapping[str, Any], report: Report | None, caller: Caller | None, *, elicit: Elicit
    ) -> t.CallToolResult: ...
    async def history(self, key: str) -> list[t.PromptMessage]: ...


class Surface:
    """Handlers of one agent.

    `failures` are the exceptions of `agent` whose text is for the caller, `model` of `provider` is what it runs on,
    `functions` are the tools of its own that callers may call without its model.
    """

    def __init__(
        self,
        settings: Settings,
        agent: Agent,
        current: Callable[[], Health],
        failures: tuple[type[Exception], ...],
        *,
        model: str = "",
        provider: str = "",
        functions: Mapping[str, t.Tool] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        self._functions = functions
        self._model = model
        self._provider = provider
        self._agent = agent
        self._current = current
        self._failures: tuple[type[Exception], ...] = (BadArgument, TooFar, NotOpen, *failures)
        replicas = settings.agent.replicas
        several = f"the agent has {replicas} replicas, and an answer may reach another one" if replicas > 1 else ""
        self._paused = PausedTurns(several)
        self.tools = [*tools(settings), *functions.values()]
        self._schemas = {tool.name: tool.input_schema for tool in self.tools}

    def server(self, observer: ServerMiddleware[Any]) -> Server[Any]:
        """Return the server. Its name is what the registry expects, its version the fleet's; `observer` sees it all."""
        settings = self._settings
        prompts: dict[str, Any] = {}
        if settings.remembers:
            prompts = {"on_list_prompts": self.list_prompts, "on_get_prompt": self.get_prompt}
        server: Server[Any] = Server(
            settings.slug,
            version=settings.fleet.version,
            title=settings.agent.title,
            instructions=settings.agent.description or None,
            # else the SDK lists all tools for every call
            get_tool_input_schema=named_in_headers(self.tools).get,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            **prompts,
        )
        server.middleware.insert(0, _contained)
        server.middleware.insert(0, spans.from_headers)  # outside of the SDK's own span
        server.middleware.append(observer)
        return server

    async def list_tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        return t.ListToolsResult(tools=self.tools)

    async def call_tool(
        self, ctx: Context, params: t.CallToolRequestParams
    ) -> t.CallToolResult | t.InputRequiredResult:
        """Answer one call, or ask its caller something first.

        What goes wrong in the agent is a tool error, only an unknown tool a protocol error.
        """
        if params.name not in self._schemas:
            raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        arguments = params.arguments or {}
        if params.name == health.TOOL:
            return self._health(arguments)
        try:
            models.check(ctx.meta, self._model, self._provider)
            task = delegation.arrived(ctx.meta, self._settings.registry_name)
        except (BadTask, OtherModel) as refused:
            log.warning("call_refused", tool=params.name, reason=str(refused), era=ctx.protocol_version)
            return _text(str(refused), failed=True)
        spans.about(task)
        with delegation.carried(task), bound_contextvars(task=task.id, depth=task.depth, path=task.route):
            return await self._timed(ctx, params, task)

    async def _timed(
        self, ctx: Context, params: t.CallToolRequestParams, task: Task
    ) -> t.CallToolResult | t.InputRequiredResult:
        started = time.perf_counter()
        tool = params.name
        try:
            answer = await self._work(ctx, params, task)
        except self._failures as failure:
            answer = str(failure)
            failed = True
        except (HungUp, asyncio.CancelledError):
            _log(ctx, "call_cancelled", tool, started, failed=True)
            raise
        else:
            failed = isinstance(answer, t.CallToolResult) and bool(answer.is_error)
        if isinstance(answer, t.InputRequiredResult):
            _log(ctx, "call_asks_back", tool, started, failed=False)
            return answer
        if self._settings.trace_content:
            spans.content(params.arguments or {}, _words(answer))
        _log(ctx, "call", tool, started, failed=failed)
        if isinstance(answer, t.CallToolResult):
            return answer
        return _text(answer, failed=failed, meta=models.answered(ctx.meta, self._model))

    async def _work(self, ctx: Context, params: t.CallToolRequestParams, task: Task) -> Answer | t.InputRequiredResult:
        """Return what the agent answers within the time the task has left, retries of the model included."""
        handshake = ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        if params.request_state is not None and not handshake:
            return await attended(ctx.request, self._paused.resume(ctx, params))
        task.check(self._settings.max_depth)
        work = self._chosen(ctx, params)
        has_token = ctx.meta is not None and ctx.meta.get("progress_token") is not None

        async def turn(elicit: Elicit, report: Report) -> Answer:
            try:
                async with asyncio.timeout(task.remaining) as limit:
                    with spans.turn(self._settings.name):
                        return await work(report if has_token else None, elicit)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise TooFar(f"no answer before the task's deadline: {task.route}") from None

        if handshake:
            return await attended(ctx.request, turn(elicitation.over_session(ctx), ctx.session.report_progress))
        return await attended(ctx.request, self._paused.begin(ctx, params, turn))

    def _chosen(self, ctx: Context, params: t.CallToolRequestParams) -> Work:
        """Return what a call has the agent do: one of its functions, or a turn of its own.

        Raises:
            BadArgument: the arguments are not those of a question.
        """
        arguments = params.arguments or {}
        if params.name in self._functions:

            async def function(report: Report | None, elicit: Elicit) -> Answer:
                return await self._agent.call(params.name, arguments, report, caller(ctx.request), elicit=elicit)

            return function
        question = calls_arguments.parse(arguments, self._settings.max_body)
        key = self._key(ctx, question.handle)

        async def answer(report: Report | None, elicit: Elicit) -> Answer:
            return await self._agent.ask(question, key, report, caller(ctx.request), elicit=elicit)

        return answer

    def _health(self, arguments: dict[str, Any]) -> t.CallToolResult:
        if arguments:
            return _text(f"{next(iter(arguments))[:80]}: unknown argument; {health.TOOL} takes none", failed=True)
        now = self._current()
        content = t.TextContent(type="text", text=now.as_json())
        return t.CallToolResult(content=[content], structured_content=now.as_dict())

    async def list_prompts(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
        return t.ListPromptsResult(prompts=[history_prompt(self._settings)])

    async def get_prompt(self, ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        if params.name != history_prompt(self._settings).name:
            raise MCPError(t.INVALID_PARAMS, f"Unknown prompt: {params.name[:80]}")
        key = self._key(ctx, (params.arguments or {}).get("session_id"))
        return t.GetPromptResult(messages=await self._agent.history(key) if key else [])

    def _key(self, ctx: Context, handle: str | None) -> str | None:
        """Return the key of a call's conversation: the named one, else the transport session's, else none.

        An agent keeps one session for all whom it asks for something, so what it passes on is in no conversation of
        that session; and a call of the stateless era is in no session, whatever its headers say.

        Both are bound to the caller, so that knowing a handle opens nothing. Where nobody is asked for a token, one
        that comes along all the same tells callers apart, unverified. Both kinds of names are kept apart: a client must
        not reach a session by using its id as a handle.
        """
        if not self._settings.remembers:
            return None
        headers = ctx.request.headers if ctx.request is not None else {}
        verified = caller(ctx.request)
        bearer = _BEARER.fullmatch(headers.get("authorization", ""))
        owner = f"verified:{verified.identity}" if verified else f"shown:{bearer[1]}" if bearer else ""
        in_session = ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS and not delegation.depth(ctx.meta)
        session = headers.get("mcp-session-id") if in_session else None
        named = f"handle:{handle}" if handle else f"session:{session}" if session else None
        return store.key(named, owner, verified is not None) if named else None


async def _contained(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Keep what nobody thought of from the caller: in sessions the SDK would answer with the exception's own text."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # for the caller: the SDK makes -32602 of the second
        raise
    except Exception:
        log.exception("request_failed", method=ctx.method, era=ctx.protocol_version)
        raise MCPError(t.INTERNAL_ERROR, "Internal server error") from None


def tools(settings: Settings) -> list[t.Tool]:
    """Return `send_message`, one named after the agent with the same arguments, and `get_health` (seeds 000, 001).

    An agent whose name is one of the other two has no tool of its own.
    """
    listed = [_asking(calls_arguments.SEND, f"Send a message, with images if you like, to {settings.name}.")]
    if calls_arguments.own_tool(settings.name) != calls_arguments.SEND:
        listed.append(_asking(settings.name, settings.agent.description or f"Send a message to {settings.name}."))
    return [*listed, _health_tool()]


def named_in_headers(tools: Iterable[t.Tool]) -> dict[str, dict[str, Any]]:
    """Return the schemas, by tool, that want some argument in a header too (MCP 2026-07-28, `x-mcp-header`).

    Of the others the SDK would walk through every part with each call.
    """
    return {tool.name: tool.input_schema for tool in tools if "x-mcp-header" in str(tool.input_schema)}


def offered(settings: Settings) -> frozenset[str]:
    """Return the names of the tools and of the prompt: all that a caller can sensibly name."""
    listed = (tool.name for tool in tools(settings))
    return frozenset({*listed, *settings.agent.functions, history_prompt(settings).name})


def _asking(name: str, description: str) -> t.Tool:
    return t.Tool(name=name, description=description, input_schema=calls_arguments.SCHEMA)


def _health_tool() -> t.Tool:
    return t.Tool(
        name=health.TOOL,
        description=health.TOOL_DESCRIPTION,
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
        annotations=t.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def history_prompt(settings: Settings) -> t.Prompt:
    argument = t.PromptArgument(
        name="session_id", description="Handle of the conversation; default: that of the transport session"
    )
    description = f"The conversation with {settings.name} so far."
    return t.Prompt(name=f"{settings.name}_history", description=description, arguments=[argument])


def _log(ctx: Context, event: str, tool: str, started: float, *, failed: bool) -> None:
    """Log the end of a call: which tool, how long, and for whom where that is known."""
    seconds = round(time.perf_counter() - started, 3)
    verified = caller(ctx.request)
    fields = {"caller": verified.name[:80]} if verified else {}
    log.info(event, tool=tool, failed=failed, seconds=seconds, era=ctx.protocol_version, **fields)


def _words(answer: Answer) -> str:
    """Return the text of an answer."""
    if isinstance(answer, str):
        return answer
    return "\n".join(block.text for block in answer.content if isinstance(block, t.TextContent))


def _text(value: str, *, failed: bool = False, meta: dict[str, Any] | None = None) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(type="text", text=value)], is_error=failed, _meta=meta)

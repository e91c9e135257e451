"""Questions to the caller in the middle of a call (MCP elicitation), in both eras.

In a session of the handshake era a question goes to the client on the stream of its call. The stateless era has no such
way back: the call is answered with what is asked, and the client sends it again with the answers (MCP 2026-07-28, Multi
Round-Trip Requests). The turn waits meanwhile.
"""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import mcp_types as t
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError

from pallas_agent_runtime.calls.progress import Report
from pallas_service.access.caller import caller

PATIENCE = 300.0
"""Seconds that a turn waits for its caller's answers between two requests; it holds an instance all the while."""
MOST = 8
"""Most turns that wait so: half of those that an agent can take at once."""

Context = ServerRequestContext[Any, Any]
Elicit = Callable[[t.ElicitRequestParams], Awaitable[t.ElicitResult]]
"""Asks the caller one question. Raises `CannotAsk`."""
Answer = str | t.CallToolResult
"""What a call comes to: the words of a turn, or the result of a function."""
Work = Callable[[Elicit, Report], Awaitable[Answer]]
"""A turn, given the ways to its caller."""


class CannotAsk(Exception):
    """The caller cannot be asked; the text says why, and is fit for the caller."""


class NotOpen(Exception):
    """A caller answers what is not, or no longer, asked; the text says what to do."""


def over_session(ctx: Context) -> Elicit:
    """Return the way to ask the client of a session of the handshake era (MCP 2025-11-25, Elicitation)."""

    async def elicit(params: t.ElicitRequestParams) -> t.ElicitResult:
        check(ctx, params)
        try:
            if isinstance(params, t.ElicitRequestURLParams):
                number = params.elicitation_id or uuid.uuid4().hex
                return await ctx.session.elicit_url(params.message, params.url, number, ctx.request_id)
            return await ctx.session.elicit_form(params.message, params.requested_schema, ctx.request_id)
        except NoBackChannelError:
            raise CannotAsk("this agent keeps no sessions, so that it can ask only clients of MCP 2026-07-28") from None
        except MCPError as error:
            raise CannotAsk(f"the caller's client does not answer: {error.error.message[:200]}") from None

    return elicit


def check(ctx: Context, params: t.ElicitRequestParams) -> None:
    """Hold a question to what the client of `ctx` declares to take.

    Raises:
        CannotAsk: it takes no questions, or none of this kind.
    """
    declared = ctx.session.client_capabilities
    elicitation = declared.elicitation if declared else None
    if elicitation is None:
        raise CannotAsk("the caller's client takes no questions: it does not declare `elicitation`")
    if isinstance(params, t.ElicitRequestURLParams) and elicitation.url is None:
        raise CannotAsk("the caller's client opens no URLs: it does not declare `elicitation.url`")
    # an empty declaration means forms (MCP 2025-11-25, Elicitation, Capabilities)
    if isinstance(params, t.ElicitRequestFormParams) and elicitation.form is None and elicitation.url is not None:
        raise CannotAsk("the caller's client shows no forms: it does not declare `elicitation.form`")


@dataclass(slots=True, eq=False)
class _Turn:
    """A turn that goes on over several requests of its caller."""

    ctx: Context
    """The request that waits for it now, or did so last."""
    owner: str
    call: tuple[str, Any]
    """Name and arguments of the tool; those who answer repeat them."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    questions: dict[str, tuple[t.ElicitRequest, asyncio.Future[t.ElicitResult]]] = field(default_factory=dict)
    count: int = 0
    task: asyncio.Task[Answer] = field(init=False)
    timer: asyncio.TimerHandle = field(init=False)
    """Ends the turn when its caller does not come back."""

    async def report(self, progress: float, total: float | None, message: str) -> None:
        """Send progress on the request that waits now, if it wants any."""
        if self.ctx.meta is not None and self.ctx.meta.get("progress_token") is not None:
            await self.ctx.session.report_progress(progress, total, message)

    async def ask(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        check(self.ctx, params)
        self.count += 1
        key = f"question-{self.count}"
        answer: asyncio.Future[t.ElicitResult] = asyncio.get_running_loop().create_future()
        self.questions[key] = (t.ElicitRequest(params=params), answer)
        self.asked.set()
        try:
            return await answer
        finally:
            self.questions.pop(key, None)


class PausedTurns:
    """The turns of the stateless era that wait for answers, by the state that their callers send back.

    `refusal` says why nobody can be asked at all; empty where everybody can.
    """

    def __init__(self, refusal: str = "", most: int = MOST, patience: float = PATIENCE) -> None:
        self._refusal = refusal
        self._most = most
        self._patience = patience
        self._paused: dict[str, _Turn] = {}

    async def begin(self, ctx: Context, params: t.CallToolRequestParams, work: Work) -> Answer | t.InputRequiredResult:
        """Return the answer of a turn, or what it asks first. A turn whose request is cancelled ends."""
        turn = _Turn(ctx, _owner(ctx), (params.name, params.arguments))

        async def ask(question: t.ElicitRequestParams) -> t.ElicitResult:
            if self._refusal:
                raise CannotAsk(self._refusal)
            if sum(not paused.task.done() for paused in self._paused.values()) >= self._most:
                raise CannotAsk(f"{self._most} calls wait for answers of their callers already")
            return await turn.ask(question)

        turn.task = asyncio.create_task(_run(work, ask, turn.report))
        turn.task.add_done_callback(_seen)
        return await self._next(turn)

    async def resume(self, ctx: Context, params: t.CallToolRequestParams) -> Answer | t.InputRequiredResult:
        """Return the answer of the turn that these are the answers for, or what it asks next.

        Raises:
            NotOpen: nothing is asked of this caller under that state.
        """
        turn = self._paused.get(params.request_state or "")
        if turn is None or turn.owner != _owner(ctx) or turn.call != (params.name, params.arguments):
            raise NotOpen(
                "requestState: nothing is asked of you here under it; an answer has "
                f"{self._patience:.0f} s, and the arguments of its call: send the message anew"
            )
        del self._paused[params.request_state or ""]
        turn.timer.cancel()
        turn.ctx = ctx
        turn.asked.clear()
        for key, response in (params.input_responses or {}).items():
            if key in turn.questions and isinstance(response, t.ElicitResult):
                turn.questions.pop(key)[1].set_result(response)
        return self._pause(turn) if turn.questions else await self._next(turn)

    async def _next(self, turn: _Turn) -> Answer | t.InputRequiredResult:
        asked = asyncio.create_task(turn.asked.wait())
        try:
            await asyncio.wait({turn.task, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            turn.task.cancel()
            raise
        finally:
            asked.cancel()
        return turn.task.result() if turn.task.done() else self._pause(turn)

    def _pause(self, turn: _Turn) -> t.InputRequiredResult:
        """Keep the turn until its caller comes back, and return what it is asked; the state tells nobody anything.

        One that ends meanwhile, by its deadline or without the answer, waits for nothing: only its end is kept.
        """
        ended = [state for state, paused in self._paused.items() if paused.task.done()]
        for state in ended[: max(0, len(ended) - self._most)]:
            self._paused.pop(state).timer.cancel()
        state = secrets.token_urlsafe(24)
        self._paused[state] = turn
        turn.timer = asyncio.get_running_loop().call_later(self._patience, self._give_up, state)
        questions: t.InputRequests = {key: request for key, (request, _) in turn.questions.items()}
        return t.InputRequiredResult(input_requests=questions, request_state=state)

    def _give_up(self, state: str) -> None:
        self._paused.pop(state).task.cancel()


async def _run(work: Work, ask: Elicit, report: Report) -> Answer:
    return await work(ask, report)


def _seen(task: asyncio.Task[Answer]) -> None:
    """Look at the end of a turn: one whose caller never came back would be reported as an exception nobody handled."""
    _ = task.cancelled() or task.exception()


def _owner(ctx: Context) -> str:
    verified = caller(ctx.request)
    return verified.identity if verified else ""

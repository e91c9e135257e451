"""Questions to callers, asked of the SDK's own clients in both eras; the agent behind the surface only pretends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import mcp_types as t
import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError

from pallas_agent_runtime.calls import elicitation
from pallas_agent_runtime.calls.elicitation import CannotAsk, NotOpen, PausedTurns
from pallas_agent_runtime.mcp_server import Surface
from pallas_agent_runtime.metrics import Metrics
from pallas_service.access.caller import Caller
from tests.agent_runtime.surfaces import surface_of

SIZE = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}
FORM = t.ElicitRequestFormParams(message="Which size?", requested_schema=SIZE)
URL = t.ElicitRequestURLParams(message="Log in.", url="https://example.com/login")


class Asking:
    """An agent that asks its caller `questions`, `together` or one after the other, and says what was answered."""

    def __init__(self, *questions: t.ElicitRequestParams, together: bool = False) -> None:
        self._questions = questions
        self._together = together
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, question: Any, key: Any, report: Any, caller: Any, *, elicit: Any) -> str:
        try:
            if self._together:
                answers = await asyncio.gather(*map(elicit, self._questions))
            else:
                answers = [await elicit(question) for question in self._questions]
        except CannotAsk as error:
            return f"cannot ask: {error}"
        finally:
            self.ended.set_result(None)
        return " ".join(f"{answer.action} {answer.content}" for answer in answers)

    async def history(self, key: str) -> list[t.PromptMessage]:
        return []


def served(agent: Asking, **config: Any) -> tuple[Surface, Any]:
    surface = surface_of(agent, **config)
    return surface, surface.server(Metrics("jarvis", [tool.name for tool in surface.tools]))


def answering(*contents: dict[str, str] | str) -> tuple[Callable[..., Any], list[t.ElicitRequestParams]]:
    """Return a client's callback that answers one after the other, an action by name, and what it was asked."""
    asked: list[t.ElicitRequestParams] = []
    rest = list(contents)

    async def callback(context: ClientRequestContext, params: t.ElicitRequestParams) -> Any:
        asked.append(params)
        content = rest.pop(0)
        if isinstance(content, str):
            return t.ElicitResult(action=content)  # type: ignore[arg-type]
        return t.ElicitResult(action="accept", content=dict(content))

    return callback, asked


async def call(server: Any, era: str, callback: Any = None) -> str:
    async with Client(server, mode=era, elicitation_callback=callback) as client:
        result = await client.call_tool("send_message", {"message": "order a pizza"})
        return str(result.content[0].text)  # type: ignore[union-attr]


async def test_a_question_goes_to_the_caller_and_its_answer_to_the_agent(era: str) -> None:
    callback, asked = answering({"size": "small"}, {"size": "large"})
    assert await call(served(Asking(FORM, FORM))[1], era, callback) == (
        "accept {'size': 'small'} accept {'size': 'large'}"
    )
    assert [params.message for params in asked] == ["Which size?", "Which size?"]
    assert all(isinstance(params, t.ElicitRequestFormParams) and params.requested_schema == SIZE for params in asked)


async def test_questions_at_the_same_time_are_all_answered(era: str) -> None:
    callback, _ = answering({"size": "small"}, {"size": "small"}, {"size": "small"})
    answer = await call(served(Asking(FORM, FORM, FORM, together=True))[1], era, callback)
    assert answer == " ".join(["accept {'size': 'small'}"] * 3)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_caller_may_decline_or_cancel(era: str, action: str) -> None:
    callback, _ = answering(action)
    assert await call(served(Asking(FORM))[1], era, callback) == f"{action} None"


async def test_an_address_is_shown_and_accepted_without_content(era: str) -> None:
    callback, asked = answering("accept")
    assert await call(served(Asking(URL))[1], era, callback) == "accept None"
    assert [params.url for params in asked if isinstance(params, t.ElicitRequestURLParams)] == [URL.url]


async def test_a_caller_that_takes_no_questions_is_asked_none_and_the_agent_told_so(era: str) -> None:
    answer = await call(served(Asking(FORM))[1], era)
    assert answer == "cannot ask: the caller's client takes no questions: it does not declare `elicitation`"


async def test_replicas_ask_nobody_for_an_answer_could_reach_another_one() -> None:
    callback, asked = answering({"size": "small"})
    server = served(Asking(FORM), instance_scope="request", replicas=2)[1]
    assert await call(server, "2026-07-28", callback) == (
        "cannot ask: the agent has 2 replicas, and an answer may reach another one"
    )
    assert asked == []


async def first_round(client: Client, message: str = "order a pizza") -> t.InputRequiredResult:
    result = await client.session.call_tool("send_message", {"message": message}, allow_input_required=True)
    assert isinstance(result, t.InputRequiredResult)
    return result


async def answer(client: Client, state: str | None, message: str = "order a pizza", **keys: t.InputResponse) -> Any:
    return await client.session.call_tool(
        "send_message",
        {"message": message},
        input_responses={key.replace("_", "-"): value for key, value in keys.items()},
        request_state=state,
        allow_input_required=True,
    )


SMALL = t.ElicitResult(action="accept", content={"size": "small"})


async def test_an_answer_counts_once_for_its_own_call_and_state_only() -> None:
    server = served(Asking(FORM))[1]
    callback, _ = answering()
    async with Client(server, elicitation_callback=callback) as client:
        asked = await first_round(client)
        for state, message in (("made-up", "order a pizza"), (asked.request_state, "something else")):
            refused = await answer(client, state, message, question_1=SMALL)
            assert refused.is_error
            assert refused.content[0].text.startswith("requestState: nothing is asked of you here under it")
        again = await answer(client, asked.request_state)  # forgot to answer: is asked the same
        assert again.input_requests == asked.input_requests
        final = await answer(client, again.request_state, question_1=SMALL)
        assert (final.is_error, final.content[0].text) == (False, "accept {'size': 'small'}")
        assert (await answer(client, again.request_state, question_1=SMALL)).is_error


async def test_an_answer_counts_from_the_caller_that_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    callers = ["alice"]
    monkeypatch.setattr(elicitation, "caller", lambda _: Caller(name="", identity=callers[-1], token=""))
    server = served(Asking(FORM))[1]
    callback, _ = answering()
    async with Client(server, elicitation_callback=callback) as client:
        asked = await first_round(client)
        callers.append("bob")
        assert (await answer(client, asked.request_state, question_1=SMALL)).is_error
        callers.append("alice")
        final = await answer(client, asked.request_state, question_1=SMALL)
        assert (final.is_error, final.content[0].text) == (False, "accept {'size': 'small'}")


async def test_a_caller_that_does_not_come_back_ends_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Asking(FORM)
    surface, server = served(agent)
    surface._paused = PausedTurns(patience=0.01)
    callback, _ = answering()
    async with Client(server, elicitation_callback=callback) as client:
        asked = await first_round(client)
        await agent.ended
        assert (await answer(client, asked.request_state, question_1=SMALL)).is_error


async def test_only_so_many_turns_wait_for_their_callers() -> None:
    surface, server = served(Asking(FORM))
    surface._paused = PausedTurns(most=0)
    callback, _ = answering()
    assert await call(server, "2026-07-28", callback) == (
        "cannot ask: 0 calls wait for answers of their callers already"
    )


PARAMS = t.CallToolRequestParams(name="send_message", arguments={})


def context_of(caller: str = "", failure: Exception | None = None, **elicitation: Any) -> Any:
    """Return the context of a request as far as a question needs it; asking its session raises `failure`."""

    async def elicit_form(*_: Any) -> None:
        assert failure
        raise failure

    declared = t.ClientCapabilities.model_validate({"elicitation": elicitation})
    session = SimpleNamespace(client_capabilities=declared, elicit_form=elicit_form)
    return SimpleNamespace(request=caller, meta=None, session=session, request_id=1)


def answered(asked: Any, **responses: Any) -> t.CallToolRequestParams:
    return t.CallToolRequestParams.model_construct(
        name=PARAMS.name,
        arguments=PARAMS.arguments,
        request_state=asked.request_state,
        input_responses={key.replace("_", "-"): value for key, value in responses.items()},
    )


async def test_only_the_verified_caller_of_a_turn_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(elicit: Any, report: Any) -> str:
        return str((await elicit(FORM)).action)

    monkeypatch.setattr(elicitation, "caller", lambda request: SimpleNamespace(identity=request))
    paused = PausedTurns()
    asked = await paused.begin(context_of("ann"), PARAMS, work)
    with pytest.raises(NotOpen):
        await paused.resume(context_of("bob"), answered(asked, question_1=SMALL))
    assert await paused.resume(context_of("ann"), answered(asked, question_1=SMALL)) == "accept"


async def test_a_turn_pauses_only_with_questions_that_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of another kind answer nothing; between two questions the turn is at work, and no timer ends it."""

    async def work(elicit: Any, report: Any) -> str:
        await elicit(FORM)
        for _ in range(5):
            await asyncio.sleep(0)
        return str((await elicit(FORM)).action)

    monkeypatch.setattr(elicitation, "caller", lambda request: None)
    paused = PausedTurns()
    asked: Any = await paused.begin(context_of(), PARAMS, work)
    timer = paused._paused[asked.request_state].timer
    asked = await paused.resume(context_of(), answered(asked, question_1=t.ListRootsResult(roots=[])))
    assert list(asked.input_requests) == ["question-1"]
    assert timer.cancelled()
    asked = await paused.resume(context_of(), answered(asked, question_1=SMALL))
    assert list(asked.input_requests) == ["question-2"]
    assert await paused.resume(context_of(), answered(asked, question_2=SMALL)) == "accept"


async def test_a_turn_that_ended_by_itself_holds_no_slot_and_its_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def patient(elicit: Any, report: Any) -> str:
        return str((await elicit(FORM)).action)

    async def hurried(elicit: Any, report: Any) -> str:
        question = asyncio.create_task(elicit(FORM))
        over = asyncio.create_task(deadline.wait())
        await asyncio.wait([question, over], return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        question.cancel()
        await asyncio.wait([question])
        return "no answer before the deadline"

    async def ended_turn() -> Any:
        asked: Any = await paused.begin(context_of(), PARAMS, hurried)
        deadline.set()
        turn = paused._paused[asked.request_state]
        timers.append(turn.timer)
        await turn.task
        deadline.clear()
        return asked

    timers: list[asyncio.TimerHandle] = []
    deadline = asyncio.Event()
    monkeypatch.setattr(elicitation, "caller", lambda request: None)
    paused = PausedTurns(most=1)
    ended = [await ended_turn() for _ in range(3)]
    waiting = await paused.begin(context_of(), PARAMS, patient)
    assert len(paused._paused) == 2  # of those that ended as many are kept as may wait
    assert [timer.cancelled() for timer in timers] == [True, True, False]
    with pytest.raises(CannotAsk, match="1 calls wait"):
        await paused.begin(context_of(), PARAMS, patient)
    with pytest.raises(NotOpen):
        await paused.resume(context_of(), answered(ended[0], question_1=SMALL))
    assert await paused.resume(context_of(), answered(ended[2], question_1=SMALL)) == "no answer before the deadline"
    assert await paused.resume(context_of(), answered(waiting, question_1=SMALL)) == "accept"


async def test_a_request_that_is_cancelled_ends_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()
    ended = asyncio.Event()

    async def work(elicit: Any, report: Any) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    monkeypatch.setattr(elicitation, "caller", lambda request: None)
    request = asyncio.create_task(PausedTurns().begin(context_of(), PARAMS, work))
    await begun.wait()
    request.cancel()
    await asyncio.wait([request])
    async with asyncio.timeout(60):
        await ended.wait()
    assert request.cancelled()


@pytest.mark.parametrize(
    ("params", "declared", "refusal"),
    [
        (FORM, {}, ""),
        (FORM, {"form": {}}, ""),
        (FORM, {"url": {}}, "shows no forms"),
        (URL, {"url": {}}, ""),
        (URL, {}, "opens no URLs"),
        (URL, {"form": {}}, "opens no URLs"),
    ],
)
def test_a_client_is_asked_only_what_it_declares(params: Any, declared: Any, refusal: str) -> None:
    with pytest.raises(CannotAsk, match=refusal) if refusal else nullcontext():
        elicitation.check(context_of(**declared), params)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (NoBackChannelError("elicitation/create"), "this agent keeps no sessions"),
        (MCPError(-32601, "Method not found"), "the caller's client does not answer: Method not found"),
    ],
)
async def test_a_client_that_cannot_be_asked_is_a_reason_for_the_agent(failure: Exception, reason: str) -> None:
    with pytest.raises(CannotAsk, match=reason):
        await elicitation.over_session(context_of(failure=failure))(FORM)


def test_half_of_the_turns_may_wait() -> None:
    from pallas_agent_runtime.engine import turns  # noqa: PLC0415 - two seconds of import

    assert 2 * elicitation.MOST == turns.LIMIT

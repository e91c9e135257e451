"""What a turn refuses before a model drops it, and leaves to the next; whole turns are in tests/agent_runtime/pair."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from fast_agent import LlmStopReason, PromptMessageExtended
from mcp_types import CallToolResult, TextContent
from structlog.testing import capture_logs

from pallas_agent_runtime.calls.arguments import Image, Question
from pallas_agent_runtime.conversations.store import Conversations, MemoryStore
from pallas_agent_runtime.engine import human_input, turns
from pallas_agent_runtime.engine.connect import Programs

QUESTION = Question("what is this?", (Image("aGk=", "image/png"),))


def agent(*mime_types: str, model: str = "") -> Any:
    """An agent of fast-agent's as far as its model is looked at; without `model` it has none."""
    info = SimpleNamespace(supports_mime=lambda mime_type: mime_type in mime_types)
    return SimpleNamespace(llm=SimpleNamespace(model_name=model, model_info=info) if model else None)


def test_of_a_workflow_the_agents_with_a_model_are_asked() -> None:
    router = agent()
    blind, seeing = agent(model="blind"), agent("image/png", model="seeing")
    assert turns._unseen(router, {"router": router, "a": blind, "b": seeing}, QUESTION) == ""
    said = "images: the model blind does not accept image/png"
    assert turns._unseen(router, {"router": router, "a": blind, "loop": agent()}, QUESTION) == said


def test_a_workflow_without_any_model_is_refused_too() -> None:
    router = agent()
    said = "images: the model of this agent does not accept image/png"
    assert turns._unseen(router, {"router": router}, QUESTION) == said


class Session:
    """A session of fast-agent's whose turns leave so many requests to servers without an answer."""

    def __init__(self, unanswered: int) -> None:
        self._unanswered = unanswered
        model = SimpleNamespace(
            config=SimpleNamespace(servers=[]), llm=None, message_history=[], call_tool=self.call_tool, clear=list
        )
        self.agent_app = SimpleNamespace(registered_agents=lambda: {"scout": model})

    async def generate(self, message: Any, request_params: Any) -> PromptMessageExtended:
        human_input._current.get().unanswered += self._unanswered
        return PromptMessageExtended(role="assistant", content=[TextContent(type="text", text="done")])

    async def call_tool(self, name: str, arguments: Any, request_params: Any) -> CallToolResult:
        if name == "unthought":
            raise ValueError("/secret/path")
        human_input._current.get().unanswered += self._unanswered
        return CallToolResult(content=[], structured_content={"name": name, **arguments})

    async def delete(self) -> None: ...


@asynccontextmanager
async def nothing_lent(*_: Any) -> Any:
    yield


def engine_of(session: Any) -> turns.Engine:
    """Return an engine whose instances `session` makes."""
    engine = turns.Engine(
        SimpleNamespace(app=SimpleNamespace(agents={}), target="scout"),  # type: ignore[arg-type]
        SimpleNamespace(),  # type: ignore[arg-type]
        Conversations(MemoryStore(turns.weigh), turns.weigh),
        choose=sorted,
        programs=Programs(frozenset(), lambda name, reason: None),
        forwarding=SimpleNamespace(servers=frozenset(), lent=nothing_lent),  # type: ignore[arg-type]
    )
    engine._harness = SimpleNamespace(session=session)  # type: ignore[assignment]
    return engine


class Failing(Session):
    """A session whose provider fails, which fast-agent returns as words of the assistant."""

    async def generate(self, message: Any, request_params: Any) -> PromptMessageExtended:
        reply = await super().generate(message, request_params)
        return reply.model_copy(update={"stop_reason": LlmStopReason.ERROR})


@pytest.mark.parametrize(
    ("problem", "words"),
    [("", "done"), ("openai: no API key", "done\n\nThe agent's health says: LLM: openai: no API key")],
)
async def test_a_turn_that_the_model_fails_says_what_the_health_has_against_its_provider(
    problem: str, words: str
) -> None:
    async def session(*_: Any, **__: Any) -> Session:
        return Failing(0)

    async def provider_problem() -> str:
        return problem

    engine = engine_of(session)
    engine.provider_problem = provider_problem
    with pytest.raises(turns.EngineFailed) as failure:
        await engine.ask(Question("hello"), None, None, None, elicit=None)  # type: ignore[arg-type]
    assert str(failure.value) == words


class Hanging(Session):
    """A session whose end waits for a server that never says a word."""

    async def delete(self) -> None:
        await asyncio.Event().wait()


async def test_a_server_that_hangs_at_its_end_keeps_no_place_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "DISCARD", 0.01)

    async def session(*_: Any, **__: Any) -> Session:
        return Hanging(1)  # so that its instance is not lent again

    engine = engine_of(session)
    async with asyncio.timeout(10):
        for _ in range(turns.LIMIT + 1):
            await engine.ask(Question("hello"), None, None, None, elicit=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("unanswered", "instances"), [(0, 1), (1, 2)])
async def test_an_instance_whose_server_may_still_ask_serves_no_other_caller(unanswered: int, instances: int) -> None:
    made: list[Session] = []

    async def session(*_: Any, **__: Any) -> Session:
        made.append(Session(unanswered))
        return made[-1]

    engine = engine_of(session)
    for _ in range(2):
        elicit: Any = None
        assert await engine.ask(Question("hello", ()), None, None, None, elicit=elicit) == "done"
    assert len(made) == instances


@pytest.mark.parametrize(("unanswered", "instances"), [(0, 1), (1, 2)])
async def test_a_function_runs_on_an_instance_of_the_pool_like_a_turn(unanswered: int, instances: int) -> None:
    made: list[Session] = []

    async def session(*_: Any, **__: Any) -> Session:
        made.append(Session(unanswered))
        return made[-1]

    engine = engine_of(session)
    elicit: Any = None
    for _ in range(2):
        result = await engine.call("fetch", {"symbol": "ACME"}, None, None, elicit=elicit)
        assert result.structured_content == {"name": "fetch", "symbol": "ACME"}
    assert len(made) == instances
    with pytest.raises(turns.EngineFailed, match=r"^internal error: ValueError; the agent's log has more$"):
        await engine.call("unthought", {}, None, None, elicit=elicit)
    engine.stop_accepting()
    with pytest.raises(turns.EngineFailed, match=turns.STOPPING):
        await engine.call("fetch", {}, None, None, elicit=elicit)


async def test_an_end_that_hangs_is_named_and_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "END", 0.01)
    session = Hanging(0)

    async def made(*_: Any, **__: Any) -> Session:
        return session

    engine = engine_of(made)
    await engine.ask(Question("hello"), None, None, None, elicit=None)  # type: ignore[arg-type]
    session.agent_app.registered_agents()["scout"].config.servers.append("notes")
    async with asyncio.timeout(10):
        with capture_logs() as lines:
            await engine.abort()
        monkeypatch.setattr(turns, "END", 1000.0)
        await engine.abort()
    assert [(line["event"], line["servers"]) for line in lines] == [("engine_not_ended", ["notes"])]


async def test_a_turn_that_takes_no_cancellation_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "END", 0.01)
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Deaf(Session):
        async def generate(self, message: Any, request_params: Any) -> PromptMessageExtended:
            begun.set()
            while not may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await may_end.wait()
            return await super().generate(message, request_params)

    async def made(*_: Any, **__: Any) -> Session:
        return Deaf(0)

    engine = engine_of(made)
    asked = asyncio.create_task(engine.ask(Question("hello"), None, None, None, elicit=None))  # type: ignore[arg-type]
    await begun.wait()
    try:
        async with asyncio.timeout(10):
            await engine.abort()
    finally:
        may_end.set()
    assert await asked == "done"


async def test_instances_end_side_by_side() -> None:
    both = asyncio.Barrier(2)

    class Meeting(Session):
        async def generate(self, message: Any, request_params: Any) -> PromptMessageExtended:
            await both.wait()
            return await super().generate(message, request_params)

        async def delete(self) -> None:
            await both.wait()

    async def made(*_: Any, **__: Any) -> Session:
        return Meeting(0)

    engine = engine_of(made)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(engine.ask(Question("hello"), None, None, None, elicit=None))  # type: ignore[arg-type]
    with capture_logs() as lines:
        await engine.abort()
    assert lines == []

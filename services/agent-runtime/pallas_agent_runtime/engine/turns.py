"""Turns: a question in, a pooled fast-agent instance with the right conversation in it, an answer out."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from fast_agent import AgentHarness, HarnessSession, LlmStopReason, PromptMessageExtended, RequestParams
from fast_agent.core.exceptions import FastAgentError
from mcp_types import CallToolResult, ContentBlock, ImageContent, PromptMessage, TextContent, Tool

from pallas_agent_runtime.calls import planning
from pallas_agent_runtime.calls.arguments import Question
from pallas_agent_runtime.calls.elicitation import Elicit
from pallas_agent_runtime.calls.progress import Progress, Report
from pallas_agent_runtime.config.settings import Settings
from pallas_agent_runtime.conversations.store import Conversations, Transcript
from pallas_agent_runtime.engine import copies, human_input, terminal, tool_policy, user_code
from pallas_agent_runtime.engine.connect import Attached, Choose, Connections, Programs
from pallas_agent_runtime.engine.definition import Loaded, said
from pallas_agent_runtime.engine.forwarding import Forwarding
from pallas_agent_runtime.engine.patches import MissingKeys, noting, overheard
from pallas_agent_runtime.engine.pool import Instances
from pallas_service.access.caller import Caller

log = structlog.get_logger(__name__)

LIMIT = 16
"""Most turns at once in one process; more wait."""
TURNS = 200
"""Turns after which an instance is replaced: fast-agent keeps a usage record of every turn in it."""
DISCARD = 5.0
"""Seconds after which the end of an instance keeps no place of a turn any more; it goes on by itself."""
END = 5.0
"""Seconds for the end of all turns and instances: what the MCP SDK needs to kill a program that ignores its signals."""
CLOSE = 1.0
"""Seconds for the end of fast-agent itself, which has nothing left to wait for."""
STOPPING = "the agent is shutting down"
_FAILED = frozenset({LlmStopReason.ERROR, LlmStopReason.TIMEOUT, LlmStopReason.CANCELLED})
"""Stop reasons under which fast-agent returns a provider's failure as if the assistant had said it."""


class EngineFailed(Exception):
    """A turn, or the engine itself, could not run; the text is fit for the caller."""


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    failed: bool = False


@dataclass(slots=True)
class _Instance:
    session: HarnessSession
    connections: Connections
    turns: int = 0
    unanswered: int = 0
    """Requests to MCP servers that a turn gave up: a question on account of one must not reach the next caller."""


class Engine:
    """Answers questions with a pool of warm instances; conversations live outside them.

    So no instance is tied to a caller, memory and downstream connections are bounded, and a failed turn leaves its
    conversation as it was. `choose` says which servers to connect to now, in which order, and `attached` is told what
    came of it; `forwarding` are those that are called as the caller, `programs` those that an instance starts itself.
    """

    def __init__(
        self,
        loaded: Loaded,
        settings: Settings,
        conversations: Conversations[PromptMessageExtended],
        *,
        choose: Choose,
        attached: Attached = lambda name, reason: None,
        programs: Programs,
        forwarding: Forwarding,
        limit: int = LIMIT,
    ) -> None:
        self._loaded = loaded
        self._settings = settings
        self._conversations = conversations
        self._choose = choose
        self._attached = attached
        self._programs = programs
        self._forwarding = forwarding
        self._wanting_humans = human_input.prepare(loaded.app.agents)
        self._harness: AgentHarness | None = None
        self._pool = Instances(self._make, self._clean, self._discard, limit, patience=DISCARD)
        self._turns: set[asyncio.Task[Any]] = set()
        self._connections: set[Connections] = set()
        """Those of all instances that have not ended."""
        self._deadline: float | None = None
        self._keys = MissingKeys()
        self._accepting = True
        self._aborting = False
        self.functions: Mapping[str, Tool] = {}
        """The functions that callers may call, as agents.yaml names them; none before it runs."""
        self.model = ""
        """The model of the agent that is asked, without its provider; empty before it runs, and where it has none."""
        self.provider = ""
        """The provider of that model, as fast-agent calls it; empty where there is no model."""
        self.provider_problem: Callable[[], Awaitable[str]] = _nothing
        """Returns what the health has against the model's provider; it is told with a turn that the model failed."""

    @property
    def failure(self) -> str:
        """Return why the agent cannot process requests at present; empty when it can."""
        return said(self._pool.failure) if self._pool.failure else ""

    @property
    def keyless(self) -> frozenset[str]:
        """Return the prefixes of the providers that the application's agents run on without a key."""
        return frozenset(self._keys.providers)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the engine, with one instance warm.

        Raises:
            EngineFailed: fast-agent cannot make an instance from the agent's definition.
        """
        try:
            if not self._settings.agent.shell:
                await tool_policy.withhold_shell(self._loaded.app)
            with (
                self._keys.tolerated(),
                overheard(self._programs.last_words),
                noting(),
                copies.cheaper(),
                terminal.unseen(),
            ):
                async with AsyncExitStack() as stack:
                    try:
                        self._harness = await self._loaded.app.harness().__aenter__()
                        stack.push_async_exit(self._close)
                        await self._warm_one()
                    except ImportError as error:  # of a package that fast-agent imports where a model wants it
                        raise EngineFailed(user_code.reason(error)) from None
                    yield
        except FastAgentError as error:
            raise EngineFailed(said(error)) from None

    async def _warm_one(self) -> None:
        async with self._pool.one() as instance:
            await instance.connections.start_programs()
            agent: Any = instance.session.agent_app.registered_agents()[self._loaded.target]
            self.functions = await tool_policy.functions(agent, self._settings)
            model = agent.llm
            self.model = str(model.model_name or "") if model else ""
            self.provider = model.provider.value if model and self.model else ""

    async def _close(self, *error: Any) -> None:
        """End what is left, and fast-agent; `error` is what ends the engine, as for `__aexit__`."""
        await self.abort()
        if self._harness is None:
            return
        try:
            async with asyncio.timeout(CLOSE):
                await self._harness.__aexit__(*error)
        except TimeoutError:
            log.warning("engine_not_closed", reason=f"fast-agent did not end within {CLOSE:g} s")

    async def ask(
        self, question: Question, key: str | None, report: Report | None, caller: Caller | None, *, elicit: Elicit
    ) -> str:
        """Take one turn of `caller`, who is asked by `elicit`.

        `key` names the conversation, None keeps nothing; `report` receives progress.

        A turn is a task of its own: a caller that goes away cancels it once, and it still cleans up after itself.

        Raises:
            EngineFailed: with what may be told to the caller.
        """
        answer = await self._finished(self._turn(question, key, report, caller, elicit=elicit))
        if answer.failed:  # fast-agent makes an empty answer of a model's request that was cancelled
            raise EngineFailed(STOPPING if self._aborting else answer.text)
        return answer.text

    async def call(
        self, name: str, arguments: Mapping[str, Any], report: Report | None, caller: Caller | None, *, elicit: Elicit
    ) -> CallToolResult:
        """Run one of `functions`, in no conversation and without the model, for `caller`, who is asked by `elicit`.

        Raises:
            EngineFailed: with what may be told to the caller. What the function raises is a result with `is_error`.
        """
        return await self._finished(self._function(name, arguments, report, caller, elicit=elicit))

    async def _finished[T](self, work: Coroutine[Any, Any, T]) -> T:
        if not self._accepting:
            work.close()
            raise EngineFailed(STOPPING)
        turn = asyncio.create_task(work)
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)
        try:
            await asyncio.wait([turn])
        except asyncio.CancelledError:
            turn.cancel()
            raise
        return _result(turn)

    async def history(self, key: str) -> list[PromptMessage]:
        """Return the conversation as protocol messages, oldest first."""
        parts = await self._conversations.read(key, self._loaded.target)
        return [message for part in parts for message in part.from_multipart()]

    def stop_accepting(self) -> None:
        """Refuse every question from now on; those being answered go on."""
        self._accepting = False

    async def abort(self) -> None:
        """Cancel every open turn and end all instances, within `END` of the first time; what is left is logged."""
        self._aborting = True
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + END
        for turn in self._turns:
            turn.cancel()
        self._pool.end()
        # a turn that is cancelled has its instance ended
        while (late := {*self._turns, *self._pool.endings}) and (seconds := self._deadline - loop.time()) > 0:
            await asyncio.wait(late, timeout=seconds)
        if late:
            servers = sorted({name for connections in self._connections for name in connections.servers})
            log.warning("engine_not_ended", servers=servers, reason=f"not within {END:g} s")

    async def _turn(
        self, question: Question, key: str | None, report: Report | None, caller: Caller | None, *, elicit: Elicit
    ) -> _Answer:
        async with self._conversations.turn(key) as transcript, self._pool.one() as instance:
            app = instance.session.agent_app
            agents: Any = app.registered_agents()
            agent = agents[self._loaded.target]
            if unseen := _unseen(agent, agents, question):
                return _Answer(unseen, failed=True)
            await instance.connections.attach()
            for name, messages in transcript.items():
                if name in agents:
                    _resume(agents[name], messages)
            before = len(agent.message_history)
            progress = self._progress(report)
            await planning.follow(agents, self._loaded.target, progress)
            with human_input.of_turn(elicit) as questions:
                async with self._forwarding.lent(agents, caller, progress):
                    reply = await instance.session.generate(_message(question), request_params=_params(progress))
            instance.unanswered = questions.unanswered
            text = _words(agent.message_history[before:], reply)
            if reply.stop_reason in _FAILED:
                problem = await self.provider_problem()
                return _Answer(_explained(text or "the model gave no answer", problem), failed=True)
            _remember(transcript, agents)
            return _Answer(text)

    async def _function(
        self, name: str, arguments: Mapping[str, Any], report: Report | None, caller: Caller | None, *, elicit: Elicit
    ) -> CallToolResult:
        async with self._pool.one() as instance:
            agents: Any = instance.session.agent_app.registered_agents()
            await instance.connections.attach()
            progress = self._progress(report)
            with human_input.of_turn(elicit) as questions:
                async with self._forwarding.lent(agents, caller, progress):
                    result: CallToolResult = await agents[self._loaded.target].call_tool(
                        name, dict(arguments), request_params=_params(progress)
                    )
            instance.unanswered = questions.unanswered
            return result

    def _progress(self, report: Report | None) -> Progress | None:
        if report is None:
            return None
        renamed = {self._loaded.target: self._settings.name}
        return Progress(report, renamed, self._settings.subagents, self._forwarding.servers)

    async def _make(self) -> _Instance:
        if self._harness is None:
            raise EngineFailed("the engine is not running")
        session = await self._harness.session(f"pool-{uuid.uuid4().hex}", agent_name=self._loaded.target)
        human_input.equip(session.agent_app.registered_agents(), self._wanting_humans)
        connections = Connections(
            session.agent_app,
            self._forwarding.servers,
            self._choose,
            programs=self._programs,
            attached=self._attached,
        )
        self._connections.add(connections)
        return _Instance(session, connections)

    async def _clean(self, instance: _Instance) -> bool:
        instance.connections.rest()
        agents: Any = instance.session.agent_app.registered_agents()
        for agent in agents.values():  # the session's own `clear` takes two locks for each
            agent.clear()
        instance.turns += 1
        return instance.turns < TURNS and not instance.unanswered

    async def _discard(self, instance: _Instance) -> None:
        try:
            # fast-agent would wait for a start under way before it closes an instance
            await instance.connections.close()
            await instance.session.delete()
        except Exception as error:  # it is broken already; what matters is that it is not lent again
            log.warning("instance_not_closed", error=type(error).__name__)
        finally:
            self._connections.discard(instance.connections)


def _result[T](turn: asyncio.Task[T]) -> T:
    if turn.cancelled():
        raise EngineFailed(STOPPING)
    try:
        return turn.result()
    except FastAgentError as error:
        raise EngineFailed(said(error)) from None
    except EngineFailed:
        raise
    except Exception as error:
        log.exception("turn_failed")
        raise EngineFailed(f"internal error: {said(error)}; the agent's log has more") from None


def _params(progress: Progress | None) -> RequestParams | None:
    return RequestParams(tool_execution_handler=progress, emit_loop_progress=True) if progress else None


def _unseen(agent: Any, agents: Any, question: Question) -> str:
    """Return the refusal where the model sees no images: fast-agent would drop one, and the model answer without it."""
    models = [agent.llm] if agent.llm else [other.llm for other in agents.values() if other.llm]
    for image in question.images:
        if not any(model.model_info and model.model_info.supports_mime(image.mime_type) for model in models):
            names = ", ".join(sorted({str(model.model_name) for model in models})) or "of this agent"
            return f"images: the model {names} does not accept {image.mime_type}"
    return ""


def _message(question: Question) -> PromptMessageExtended:
    images = [ImageContent(type="image", data=image.data, mime_type=image.mime_type) for image in question.images]
    return PromptMessageExtended(role="user", content=[TextContent(type="text", text=question.text), *images])


def _words(messages: Iterable[PromptMessageExtended], reply: PromptMessageExtended) -> str:
    """Everything the agent said in this turn, also before a tool call (seed 000 section 4, Limitations)."""
    texts = [text for message in messages if message.role == "assistant" and (text := message.all_text())]
    final = reply.all_text()
    return "\n\n".join(texts if texts and texts[-1] == final else [*texts, final])


async def _nothing() -> str:
    return ""


def _explained(text: str, problem: str) -> str:
    """Return the words of a provider's failure, which is a mere timeout where a key is missing, with what is known."""
    return f"{text}\n\nThe agent's health says: LLM: {problem}" if problem else text


def _resume(agent: Any, messages: list[PromptMessageExtended]) -> None:
    """Give `agent` the history `messages`, which nobody else changes.

    `load_message_history` copies every message in depth, a fifth of a turn late in a conversation of ten. All else that
    it restores comes from the results of tools; the list itself is filled as fast-agent does when it reloads an agent.
    """
    agent.load_message_history([message for message in messages if message.tool_results])
    agent.message_history[:] = messages


def _remember(transcript: Transcript[PromptMessageExtended], agents: Any) -> None:
    histories = {name: agent.message_history for name, agent in agents.items() if agent.message_history}
    transcript.clear()
    transcript.update({name: list(messages) for name, messages in histories.items()})


def weigh(message: PromptMessageExtended) -> int:
    """Bytes of a message, roughly: the texts and images in it and in the results of tools, and what tools are given."""
    weight = _weight(message.content)
    for result in (message.tool_results or {}).values():
        weight += _weight(result.content)
    for call in (message.tool_calls or {}).values():
        if call.params.arguments:
            weight += len(json.dumps(call.params.arguments))
    return weight


def _weight(blocks: Iterable[ContentBlock]) -> int:
    weight = 0
    for block in blocks:  # each message is weighed twice a turn
        weight += len(getattr(block, "text", None) or getattr(block, "data", None) or "")
    return weight

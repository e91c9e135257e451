"""fast-agent's own prints: none reaches the terminal, and those of errors become log events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from fast_agent import LlmAgent
from fast_agent.agents.agent_types import AgentConfig
from fast_agent.agents.mcp_agent import McpAgent
from fast_agent.llm.fastagent_llm import FastAgentLLM
from fast_agent.llm.model_factory import ModelFactory
from fast_agent.ui.console import console, error_console
from structlog.testing import capture_logs

from pallas_agent_runtime.engine.terminal import silence, unseen


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    before = error_console._file
    silence()
    yield
    console.quiet = False
    error_console.soft_wrap = False
    error_console.file = before  # type: ignore[assignment]


def test_a_retry_is_one_event_and_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    """fast-agent's own function prints it: an upgrade that words it otherwise fails here."""
    llm: Any = SimpleNamespace(
        _retry_wait_seconds=lambda attempt: 0.0,
        _log_retry_webdebug=lambda *_, **__: None,
        _paused_progress_display=nullcontext,
    )
    failure = ConnectionError("no route to the host, " + "long " * 40)
    with capture_logs() as lines:
        asyncio.run(FastAgentLLM._wait_before_retry(llm, failure, attempt=1, retries=3))
    assert lines == [
        {
            "event": "model_retry",
            "reason": str(failure).strip(),
            "attempt": 2,
            "attempts": 4,
            "seconds": 0.0,
            "log_level": "warning",
        }
    ]
    assert capfd.readouterr() == ("", "")


def test_anything_else_is_an_event_too_and_stdout_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with capture_logs() as lines:
        error_console.print("\n[bold red]Something:[/bold red]\n is wrong")
        error_console.print()
        console.print("a result")
    assert lines == [{"event": "fast_agent", "message": "Something: is wrong", "log_level": "warning"}]
    assert capfd.readouterr() == ("", "")


class Display:
    """A display that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve_streaming_preferences(self) -> Any:
        return SimpleNamespace(enabled=False, mode="none")

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)

        async def shown(*_: Any, **__: Any) -> None:
            pass

        return shown if name == "show_assistant_message" else lambda *_, **__: None


class Telling(LlmAgent):
    """An agent of a project that does something of its own with each answer."""

    told = 0

    async def show_assistant_message(self, *args: Any, **kwargs: Any) -> None:
        self.told += 1
        await super().show_assistant_message(*args, **kwargs)


async def answered(kind: type[LlmAgent]) -> Any:
    agent = kind(AgentConfig(name="scout", instruction="You repeat."))
    agent.display = Display()  # type: ignore[assignment]
    await agent.attach_llm(ModelFactory.create_factory("passthrough"))
    assert await agent.send("hi") == "hi"
    return agent


@pytest.mark.parametrize("kind", [LlmAgent, McpAgent, Telling])
async def test_no_message_is_prepared_for_a_display_that_shows_none(kind: type[LlmAgent]) -> None:
    theirs = vars(kind).get("show_assistant_message")
    seen = (await answered(kind)).display.asked
    assert {"show_user_message", "show_assistant_message"} <= set(seen)
    with unseen():
        agent = await answered(kind)
        assert agent.display.asked == []
        assert getattr(agent, "told", 1) == 1
    assert vars(kind).get("show_assistant_message") is theirs

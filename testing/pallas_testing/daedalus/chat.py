"""One message to an agent, and the status line while it works (seed 000 section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcp import Client

from pallas_testing.daedalus.health import TOOL as HEALTH_TOOL
from pallas_testing.daedalus.health import Health, root


class Blocked(Exception):
    """The agent's health is `error`: the chat endpoint answers 503 and the input is disabled."""

    def __init__(self, health: Health) -> None:
        super().__init__(health.message)
        self.health = health


class NoAnswer(Exception):
    """The agent has nothing to be asked with, or was asked and failed; the text says how."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One `notifications/progress`. Without a total the end is not known: a spinner."""

    progress: float
    total: float | None
    message: str

    @property
    def indeterminate(self) -> bool:
        return self.total is None

    @property
    def completed(self) -> bool:
        """A tool or sub-task is done; the call as a whole may still be running."""
        return self.total is not None and self.progress >= self.total


class StatusLine:
    """The line beneath the "thinking" indicator: each notification replaces it, the answer clears it."""

    def __init__(self, on_change: Callable[[Progress | None], None] = lambda _: None) -> None:
        """`on_change` is told what the line shows now; None when it is cleared."""
        self._on_change = on_change
        self.shown: Progress | None = None

    def show(self, shown: Progress | None) -> None:
        self.shown = shown
        self._on_change(shown)


async def ask(url: str, server_id: str, message: str, line: StatusLine) -> str:
    """Return the agent's answer as text. The SDK sends a `progressToken`, because there is a callback for progress.

    Raises:
        NoAnswer: it cannot be asked, or it failed.
    """

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        line.show(Progress(progress, total, message or ""))

    try:
        async with Client(url) as client:
            tool = choose(server_id, [tool.name for tool in (await client.list_tools()).tools])
            result = await client.call_tool(tool, {"message": message}, progress_callback=progress)
    except Exception as error:  # the SDK raises whatever its transport does, alone or in groups
        raise NoAnswer(root(error)) from None
    finally:
        line.show(None)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise NoAnswer(text)
    return text


def choose(server_id: str, tools: list[str]) -> str:
    """Return the tool to chat with: the one named after the agent, else the first that is not `get_health`.

    Raises:
        NoAnswer: there is none.
    """
    others = [tool for tool in tools if tool != HEALTH_TOOL]
    named = [tool for tool in others if tool.replace("_", "-") == server_id.replace("_", "-")]
    if not others:
        raise NoAnswer(f"{server_id} has no tool to be asked with")
    return (named or others)[0]

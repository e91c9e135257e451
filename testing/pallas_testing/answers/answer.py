"""The answer of an agent, and what a test can demand of the way to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_testing.answers.calls import Call, Progress

_ARROW = "->"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one message. `call` is the asked agent's own, whose `seconds` the whole answer took."""

    text: str
    progress: tuple[Progress, ...]
    call: Call

    @property
    def calls(self) -> Sequence[Call]:
        """The calls that the agent made, each with those behind it."""
        return self.call.calls

    @property
    def messages(self) -> list[str]:
        """The progress lines, as they came."""
        return [notification.message for notification in self.progress]

    @property
    def tree(self) -> str:
        """The delegation tree as text, a call a line, with seconds."""
        return "\n".join(self.call.lines())

    def delegated(self, path: str) -> bool:
        """Return True where the agents called each other like this: `harper -> research -> argos/search_web`.

        The first is the one that was asked; each other is an agent or `server/tool`, called by the one before it; `*`
        stands for any text.

        Raises:
            AssertionError: they did not; it says how far they came, and shows the tree.
        """
        __tracebackhide__ = True
        expected = [step.strip() for step in path.split(_ARROW)]
        longest = max((_agreement(expected, actual) for actual in self.call.paths()), default=0)
        if longest == len(expected):
            return True
        reached = f" {_ARROW} ".join(expected[:longest])
        made = f"{reached} was called, but not {expected[longest]} by it" if longest else f"not asked: {expected[0]}"
        raise AssertionError(f"no delegation {path}\n{made}. The calls were:\n{self.tree}")

    def progressed(self, *messages: str) -> bool:
        """Return True where these progress lines came in this order, others between them; `*` stands for any text.

        Raises:
            AssertionError: they did not; it shows the lines that came, and at which one it waited in vain.
        """
        __tracebackhide__ = True
        remaining = list(messages)
        lines = []
        for message in self.messages:
            matched = bool(remaining) and _fits(remaining[0], message)
            if matched:
                remaining.pop(0)
            lines.append(f"{'+' if matched else ' '} {message}")
        if not remaining:
            return True
        lacking = [f"- {message}" for message in remaining]
        raise AssertionError("\n".join(["progress lacks (-) what was expected, after (+):", *lines, *lacking]))


class AgentFailed(Exception):
    """The agent answered with a tool error, whose text is this one's; `answer` has what came before it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.answer = answer


def _agreement(expected: Sequence[str], actual: Sequence[Call]) -> int:
    """Return how many steps from the first on are the same."""
    count = 0
    for step, call in zip(expected, actual, strict=False):
        if not any(_fits(step, name) for name in (call.label, call.label.replace("_", "-"))):
            break
        count += 1
    return count


def _fits(pattern: str, text: str) -> bool:
    """Return True where `*` stands for any text; nothing else is special, since lines have brackets: `[1]`."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None

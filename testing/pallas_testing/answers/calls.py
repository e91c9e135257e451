"""Progress lines -> the tree of calls behind an answer, with how long each took.

The lines are those of seed 000 section 4, Message Format. A line names the server and the tool, not who called: the
caller is, of the agents that are at work, one that agents.yaml lets call that server (`depends_on`); of several the one
that was asked last. Agents that share a server and are asked at the same time can so be taken for each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["completed", "failed", "open"]
"""`open`: no line said that it ended."""
_LINE = re.compile(r"(?P<server>[^/]+)/(?P<tool>.+): (?P<event>started|completed|failed)")


@dataclass(frozen=True, slots=True)
class Progress:
    """One `notifications/progress`: `at` is in seconds since the message was sent; without `total` no end is known."""

    at: float
    progress: float
    total: float | None
    message: str


@dataclass(slots=True)
class Call:
    """One call of a tool. `seconds` is how long it took, as its caller's client saw it; None while it is open."""

    server: str
    tool: str
    began: float
    seconds: float | None = None
    outcome: Outcome = "open"
    calls: list[Call] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The name of an agent, else `server/tool`."""
        return self.server if self.is_agent else f"{self.server}/{self.tool}"

    @property
    def is_agent(self) -> bool:
        """True for a sub-agent, whose tool the contract names `{server}__{tool}`."""
        return self.tool.startswith(f"{self.server}__")

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the call and those behind it, each as a line, indented by its depth."""
        seconds = "open" if self.seconds is None else f"{self.seconds:.2f} s"
        failed = ", failed" if self.outcome == "failed" else ""
        yield f"{'  ' * depth}{self.label} ({seconds}{failed})"
        for call in self.calls:
            yield from call.lines(depth + 1)

    def paths(self) -> Iterator[tuple[Call, ...]]:
        """Yield every way from this call down to one behind it, the call alone first."""
        yield (self,)
        for call in self.calls:
            for path in call.paths():
                yield (self, *path)


def tree(agent: str, progress: Iterable[Progress], may_call: Mapping[str, Sequence[str]]) -> Call:
    """Return the call of `agent`, with all that the lines tell of behind it; it has no end of its own yet.

    `may_call` maps agents to the servers and agents that they use, as agents.yaml has it.
    """
    root = Call(agent, f"{agent}__{agent}", began=0.0)
    opened: list[Call] = []
    for notification in progress:
        match = _LINE.fullmatch(notification.message)
        if match is None:
            continue
        if match["event"] == "started":
            call = Call(match["server"], match["tool"], began=notification.at)
            _caller(call, [root, *opened], may_call).calls.append(call)
            opened.append(call)
            continue
        call = _ended(opened, match["server"], match["tool"], root)
        call.seconds = notification.at - call.began
        call.outcome = "failed" if match["event"] == "failed" else "completed"
    return root


def _caller(call: Call, opened: Sequence[Call], may_call: Mapping[str, Sequence[str]]) -> Call:
    agents = [other for other in opened if other.is_agent]
    allowed = [other for other in agents if call.server in may_call.get(other.server, ())]
    return (allowed or agents)[-1]


def _ended(opened: list[Call], server: str, tool: str, root: Call) -> Call:
    """Return the oldest open call of this tool; one whose start nobody told of begins and ends at once."""
    for call in opened:
        if (call.server, call.tool) == (server, tool):
            opened.remove(call)
            return call
    call = Call(server, tool, began=0.0)
    root.calls.append(call)
    return call

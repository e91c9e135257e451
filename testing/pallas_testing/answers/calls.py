"""Progress lines -> the tree of calls behind an answer, with how long each took.

The lines are those of seed 000 section 4, Message Format. A line names the server and the tool, not who called: the
caller is, of the agents that are at work, one that agents.yaml lets call that server (`depends_on`), and of several one
whose own lines say that it calls tools (`research step 2 (tool)`). Where that leaves more than one, as with agents that
are asked at the same time and share a server, the call names the others, and counts as one of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["completed", "failed", "open"]
"""`open`: no line said that it ended."""
_LINE = re.compile(r"(?P<server>[^/]+)/(?P<tool>.+): (?P<event>started|completed|failed)")
_STEP = re.compile(r"(?P<agent>[^/]+) step \d+ \((?P<step>llm|tool)\)")


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
    possible_calls: list[Call] = field(default_factory=list)
    """Calls of other agents in the tree that may as well be of this one."""
    other_callers: tuple[str, ...] = ()
    """Agents that may have made this call, beside the one that has it in `calls`."""

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
        others = f", or by {' or '.join(self.other_callers)}" if self.other_callers else ""
        yield f"{'  ' * depth}{self.label} ({seconds}{failed}{others})"
        for call in self.calls:
            yield from call.lines(depth + 1)

    def paths(self) -> Iterator[tuple[Call, ...]]:
        """Yield every way from this call down to one behind it, or possibly so, the call alone first."""
        yield (self,)
        for call in [*self.calls, *self.possible_calls]:
            for path in call.paths():
                yield (self, *path)


def tree(agent: str, progress: Iterable[Progress], may_call: Mapping[str, Sequence[str]]) -> Call:
    """Return the call of `agent`, with all that the lines tell of behind it; it has no end of its own yet.

    `may_call` maps agents to the servers and agents that they use, as agents.yaml has it.
    """
    root = Call(agent, f"{agent}__{agent}", began=0.0)
    opened: list[Call] = []
    steps: dict[str, _Step] = {}
    for notification in progress:
        if step := _STEP.fullmatch(notification.message):
            steps.pop(step["agent"], None)  # so that the latest is the last
            steps[step["agent"]] = _Step(calls_tools=step["step"] == "tool")
        match = _LINE.fullmatch(notification.message)
        if match is None:
            continue
        if match["event"] == "started":
            call = Call(match["server"], match["tool"], began=notification.at)
            _attach(call, _callers(call, [root, *opened], may_call, steps), steps)
            opened.append(call)
            continue
        call = _ended(opened, match["server"], match["tool"], root)
        call.seconds = notification.at - call.began
        call.outcome = "failed" if match["event"] == "failed" else "completed"
    return root


@dataclass(slots=True)
class _Step:
    """The last line of an agent about its own loop."""

    calls_tools: bool
    started: bool = False
    """Whether a call of it has been seen since."""


def _callers(
    call: Call, opened: Sequence[Call], may_call: Mapping[str, Sequence[str]], steps: Mapping[str, _Step]
) -> list[Call]:
    """Return the agents that may have made `call`, the most likely one last.

    An agent says that it calls tools before it does, and starts those of one step together: one that waits for an
    agent whose own lines have come starts no more of them. One without such lines, as a workflow, may call at any time.
    """
    agents = [other for other in opened if other.is_agent]
    allowed = [other for other in agents if call.server in may_call.get(other.server, ())] or agents
    free = [other for other in allowed if _may_start(other, steps)] or allowed
    latest_first = list(steps)[::-1]

    def likelihood(caller: Call) -> tuple[int, int]:
        step = steps.get(caller.server)
        if any(inner.is_agent and inner.outcome == "open" for inner in caller.calls):
            return 0, 0
        if step is None:
            return 1, 0
        # of those that have started nothing since they said so, the first to say it is the first to do it
        recency = latest_first.index(caller.server)
        return (2, -recency) if step.started else (3, recency)

    return sorted(free, key=likelihood)


def _may_start(caller: Call, steps: Mapping[str, _Step]) -> bool:
    step = steps.get(caller.server)
    waits = any(inner.outcome == "open" and inner.is_agent and inner.server in steps for inner in caller.calls)
    return step is None or (step.calls_tools and not waits)


def _attach(call: Call, callers: Sequence[Call], steps: Mapping[str, _Step]) -> None:
    caller = callers[-1]
    caller.calls.append(call)
    if caller.server in steps:
        steps[caller.server].started = True
    call.other_callers = tuple(sorted({other.label for other in callers} - {caller.label}))
    for other in callers[:-1]:
        other.possible_calls.append(call)


def _ended(opened: list[Call], server: str, tool: str, root: Call) -> Call:
    """Return the oldest open call of this tool; one whose start nobody told of begins and ends at once."""
    for call in opened:
        if (call.server, call.tool) == (server, tool):
            opened.remove(call)
            return call
    call = Call(server, tool, began=0.0)
    root.calls.append(call)
    return call

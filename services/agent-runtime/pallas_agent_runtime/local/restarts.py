"""Keeps one member running: start, wait until it answers, start again with back-off when it dies.

All waiting goes through the event loop's clock, so that a test can run hours of it at once.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from pallas_agent_runtime.local.child import Child, Spawn
from pallas_agent_runtime.local.ports import Port
from pallas_agent_runtime.local.programs import Member
from pallas_contract.documents.reason import OK, Reason
from pallas_contract.launch.program import START_PERIOD

State = Literal["waiting", "starting", "ready", "late", "down", "refused", "stopped"]
"""`late`: runs, but does not answer yet; `down`: ended, about to start again; `refused`: ended for good."""
Level = Literal["info", "warning", "error"]
Check = Callable[[str], Awaitable[str]]
"""Asks a URL whether who listens there is ready: empty, or the reason why not."""

_TAIL = 20
_SHOWN = 5
"""Last lines of output that are kept, and that are repeated to people."""
_LONGEST = 300
"""Most characters of a line that is handed on."""
_FASTER = ((8, 2), (4, 4))
"""Questions in the time of one while a start has taken less than so many of those times."""
_NO_MESSAGE = (" ", "\t", "warning:")
_CODES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Control sequences of a terminal (ECMA-48, section 5.4)."""
INPUT_ERROR = 2
"""Exit code of a program that found the user's input wrong: starting it again would find the same."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds.

    The readiness deadline counts from a member's own start, not the fleet's. An agent needs 4.4 s of CPU until its
    first answer; ten at once on two cores needed 54 s each. As no more start at a time than there are cores, each has
    one to itself, and 60 s is an order of magnitude more than it needs, whatever the size of the fleet. A fork needs
    a hundredth of that, so two share a core.
    """

    ready: float = START_PERIOD["local"]
    poll: float = 0.25
    """Between two questions whether a member is ready, and a part of it at first: a fork is after 0.1 s."""
    first_pause: float = 0.5
    longest_pause: float = 30.0
    healthy: float = 60.0
    """A member that was ready for so long starts again as if for the first time."""
    grace: float = 10.0
    """From the first Ctrl-C until what still runs is killed."""


class Reporter(Protocol):
    """The receiver of what happens to members."""

    def output(self, name: str, line: str) -> None:
        """Report a line of output of member `name`."""

    def report(self, name: str, text: str, level: Level = "info") -> None:
        """Report a change in the state of member `name`."""


class Slots:
    """The starts that go on at once: one a core, and of forks two, which wait for others half of their time.

    First come, first served: those earlier in start order get them first.
    """

    def __init__(self, cores: int, is_fork: Callable[[Member], bool] = lambda _: False) -> None:
        """`is_fork` says whose start is a fork of a process that has imported what it needs (decision 0062)."""
        self._cores = cores
        self._is_fork = is_fork
        self._alone = asyncio.Semaphore(cores)
        self._forked = asyncio.Semaphore(2 * cores)

    @asynccontextmanager
    async def of(self, member: Member) -> AsyncIterator[None]:
        """Wait until it is the turn of `member` to start, and keep its place meanwhile."""
        if self._is_fork(member):
            async with self._forked:
                if self._is_fork(member):
                    yield
                    return
        async with self._alone:  # also who waited for a fork, where there are none any more
            yield

    def text(self, members: Iterable[Member]) -> str:
        """Return how many of `members` start at once, for people."""
        forks = f", of forks {2 * self._cores}" if any(map(self._is_fork, members)) else ""
        return f"{self._cores} at a time{forks}"


class Keeper:
    """The life of one member. Cancelling `run` asks the process to end and waits for it; `kill` makes it end."""

    def __init__(
        self,
        member: Member,
        *,
        port: Port,
        spawn: Spawn,
        check: Check,
        slots: Slots,
        reporter: Reporter,
        timing: Timing,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the member and what its life needs; `changed` is called after each change of state."""
        self.member = member
        self._port = port
        self._timing = timing
        self._spawn = spawn
        self._check = check
        self._slots = slots
        self._reporter = reporter
        self._changed = changed
        self._child: Child | None = None
        self._born = 0.0
        self._ready_since: float | None = None
        self._missing = ""
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self._ending = ""
        self._awaited = ""
        self.state: State = "waiting"
        self.start_seconds: float | None = None
        """From the last start until it answered."""
        self.settled = asyncio.Event()
        """Set once those who need this member may start: it answers, refused, or was given enough time from its first
        start, however many starts it took (seed 001: 60 s, then the fleet goes on without it)."""
        self._patience: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    @property
    def seconds(self) -> float | None:
        """Return how long the member has been running without an answer; None when it does not."""
        return self._now() - self._born if self.state in ("starting", "late") else None

    @property
    def absence(self) -> Reason:
        """Return why the member is not up; nothing once it is, or is late: then who asks it hears the reason."""
        if self.state == "refused":
            return Reason("InputRefused", self._last_line() or "it refused its input")
        if self._ending and self.state in ("starting", "down"):
            return Reason("Exited", f"{self._ending}; it is started again")
        if self.state == "waiting":
            return Reason("Starting", f"waits for {self._awaited}" if self._awaited else "waits for its turn to start")
        return Reason("Starting", "not up yet") if self.state == "starting" else OK

    async def run(self, fleet: Mapping[str, Keeper]) -> None:
        """Keep the member running until cancelled, or until it refuses its input."""
        try:
            for need in sorted(self.member.needs):
                self._awaited = need
                self._changed()
                await fleet[need].settled.wait()
            self._awaited = ""
            self._changed()
            pause = self._timing.first_pause
            while True:
                ending = await self._live()
                if self.state == "refused":
                    self._report(f"{ending}: refused its input, see its lines above; not started again", "error")
                    return
                if self._was_healthy():
                    pause = self._timing.first_pause
                self._report(f"{ending}; starting it again in {pause:g} s", "error")
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._timing.longest_pause)
        finally:
            if self.state != "refused":
                self._enter("stopped")
            self.settled.set()

    def kill(self) -> None:
        if self._child:
            self._child.kill()

    async def _live(self) -> str:
        """Run one life from start to exit; return how it ended."""
        answer: asyncio.Task[None] | None = None
        try:
            async with self._slots.of(self.member):
                self._begin()
                child = self._child = await self._spawn(self.member, self._on_line, self._port.hand_over())
                answer = asyncio.create_task(self._until_ready())
                await self._first_answer(child, answer)
            code = await child.wait()
        except Exception as error:  # what Popen raises for what it is given, no thread left: the others go on
            self._ending = f"cannot be started: {error}"
            self._enter("down")
            return self._ending
        finally:
            if answer:
                answer.cancel()
            await self._end()
            self._port.take_back()
        self._ending = _ending(code)
        if code == INPUT_ERROR:
            self._enter("refused")
            return self._ending
        self._enter("down")
        line = self._last_line()
        return f"{self._ending} (its last line: {line})" if line else self._ending

    def _enter(self, state: State) -> None:
        self.state = state
        self._changed()

    def _last_line(self) -> str:
        """Return the last line of output that is a message; hints and tracebacks are indented."""
        plain = (_CODES.sub("", line).rstrip() for line in reversed(self._tail))
        return next((line for line in plain if line and not line.startswith(_NO_MESSAGE)), "")[:_LONGEST]

    def _begin(self) -> None:
        self._tail.clear()
        self._enter("starting")
        self._ready_since = None
        self._born = self._now()
        if not self._patience:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(self._timing.ready, self.settled.set)

    async def _first_answer(self, child: Child, answer: asyncio.Task[None]) -> None:
        """Return when the member is ready, has ended, or was waited for long enough."""
        leaving = asyncio.create_task(child.wait())
        try:
            done, _ = await asyncio.wait(
                {answer, leaving}, timeout=self._timing.ready, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            leaving.cancel()
        if not done:
            self._enter("late")
            output = "".join(f"\n  {line}" for line in list(self._tail)[-_SHOWN:])
            waited = f"not ready after {self._timing.ready:g} s ({self._missing}); the fleet goes on without it"
            self._report(f"{waited}. Its last lines:{output}" if output else waited, "error")

    async def _until_ready(self) -> None:
        first = self.start_seconds is None
        while reason := await self._unreadiness():
            self._missing = reason
            await asyncio.sleep(self._pause())
        self._ready_since = self._now()
        self.start_seconds = self._ready_since - self._born
        self._ending = ""
        self._enter("ready")
        self._report(f"ready{'' if first else ' again'} after {self.start_seconds:.1f} s")
        self.settled.set()

    def _pause(self) -> float:
        """Return the seconds until the member is asked again: none is much of what its start has taken so far."""
        waited = self._now() - self._born
        poll = self._timing.poll
        return poll / next((share for share, end in _FASTER if waited < end * poll), 1)

    async def _unreadiness(self) -> str:
        """Return why the member is not ready; no answer of another program is taken for its own."""
        try:
            reason = await self._check(self.member.health_url)
            if not reason and (stranger := self._port.stranger()):
                return f"another program answers on its port: {stranger}"
        except Exception as error:  # whatever it answers, it is asked again, and the others are kept running
            return f"it cannot be asked: {type(error).__name__}"
        return reason

    async def _end(self) -> None:
        """Ask a running child to end, and stay until it has; there is one only after a cancellation."""
        if self._child:
            self._child.terminate()
            await self._child.wait()
            self._child = None

    def _was_healthy(self) -> bool:
        return self._ready_since is not None and self._now() - self._ready_since >= self._timing.healthy

    def _on_line(self, line: str) -> None:
        self._tail.append(line)
        self._reporter.output(self.member.name, line)

    def _report(self, text: str, level: Level = "info") -> None:
        self._reporter.report(self.member.name, text, level)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _ending(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"

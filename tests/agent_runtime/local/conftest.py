"""A world without processes and without waiting: children that follow a script, on a clock that jumps."""

from __future__ import annotations

import asyncio
import io
import selectors
import signal
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pallas_agent_runtime.local.console import Screen
from pallas_agent_runtime.local.programs import Member
from pallas_agent_runtime.local.restarts import Slots, Timing
from pallas_agent_runtime.local.supervisor import Questions, Supervisor
from pallas_contract.documents.reason import Reason
from tests.ports import free_port, free_ports


class JumpingSelector(selectors.SelectSelector):
    """Never sleeps: moves `now` to the moment somebody waits for."""

    now = 0.0

    def select(self, timeout: float | None = None):
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self.now += 0 if ready else timeout or 0
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run[T](main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(main)


@dataclass
class Life:
    """One start of a member, in seconds after it: `ready` is when it answers, `ends` when it exits with `code`."""

    ready: float | None = 1.0
    ends: float | None = None
    code: int = 1
    heeds: float | None = 0.1
    """From SIGTERM to its exit; None ignores it."""
    says: tuple[str, ...] = ()


class FakeChild:
    def __init__(self, world: World, name: str, life: Life, pid: int) -> None:
        self._world, self._name, self._life, self.pid = world, name, life, pid
        loop = asyncio.get_running_loop()
        self._born, self._ended = loop.time(), loop.create_future()
        if life.ends is not None:
            loop.call_later(life.ends, self._exit, life.code)

    @property
    def answers(self) -> bool:
        age = asyncio.get_running_loop().time() - self._born
        return self._life.ready is not None and age >= self._life.ready and not self._ended.done()

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def terminate(self) -> None:
        if not self._ended.done():
            self._world.note("term", self._name)
            if self._life.heeds is not None:
                asyncio.get_running_loop().call_later(self._life.heeds, self._exit, 0)

    def kill(self) -> None:
        self._world.note("kill", self._name)
        self._exit(-signal.SIGKILL)

    def _exit(self, code: int) -> None:
        if not self._ended.done():
            self._world.note("exit", self._name)
            self._ended.set_result(code)


FD = 7


@dataclass
class FakePort:
    """A port whose stranger, if there is one, is in `World.strangers`."""

    world: World
    name: str

    def hand_over(self) -> int:
        self.world.note("hand over", self.name)
        return FD

    def take_back(self) -> None:
        self.world.note("take back", self.name)

    def stranger(self) -> str:
        return self.world.strangers.get(self.name, "")

    def close(self) -> None:
        self.world.note("close", self.name)


@dataclass
class World:
    """Plays the lives of the members; `events` is (seconds, what, who)."""

    lives: dict[str, list[Life]] = field(default_factory=dict)
    events: list[tuple[float, str, str]] = field(default_factory=list)
    children: dict[str, FakeChild] = field(default_factory=dict)
    strangers: dict[str, str] = field(default_factory=dict)
    """Member -> the program that answers in its place."""
    conditions: dict[str, str] = field(default_factory=dict)
    """Member -> why it is not well."""
    out: io.StringIO = field(default_factory=io.StringIO)
    terminal: bool = False
    also: str = ""
    """What is told after the table."""
    absences: list[tuple[float, dict[str, tuple[str, str]]]] = field(default_factory=list)
    """What the registry is told: (seconds, agent -> code and message), once per change."""
    asked: list[tuple[float, str]] = field(default_factory=list)
    """Who was asked whether it is ready, and when."""
    supervisor: Supervisor = field(init=False)

    def supervise(self, *members: Member, cores: int = 2, timing: Timing | None = None, forks: Sequence[str] = ()):
        screen = Screen(
            Console(file=self.out, width=120, force_terminal=self.terminal, _environ={"TERM": "xterm"}),
            [member.name for member in members],
        )
        self.supervisor = Supervisor(
            members,
            ports={member.name: FakePort(self, member.name) for member in members},
            spawn=self._spawn,
            questions=Questions(self._check, self._condition),
            screen=screen,
            slots=Slots(cores, lambda member: member.name in forks),
            timing=timing or Timing(),
            publish=self._publish,
        )
        return self.supervisor

    def run(
        self, *members: Member, until: float, again: float | None = None, following: Any = None, **options: Any
    ) -> int:
        """Supervise `members`, stop after `until` seconds, and a second time after `again`."""

        async def main() -> int:
            supervisor = self.supervise(*members, **options)
            supervisor.following = following
            supervisor.also = self.also
            loop = asyncio.get_running_loop()
            for moment in (until, again):
                if moment is not None:
                    loop.call_later(moment, supervisor.stop)
            return await supervisor.run()

        return run(main())

    def times(self, what: str, who: str) -> list[float]:
        return [round(at, 1) for at, event, name in self.events if (event, name) == (what, who)]

    def order(self, what: str) -> list[str]:
        return [name for _, event, name in self.events if event == what]

    def note(self, what: str, who: str) -> None:
        self.events.append((asyncio.get_running_loop().time(), what, who))

    @property
    def said(self) -> str:
        return self.out.getvalue()

    def _publish(self, absences: Mapping[str, Reason]) -> None:
        told = {name: (reason.code, reason.message) for name, reason in absences.items()}
        if not self.absences or self.absences[-1][1] != told:
            self.absences.append((round(asyncio.get_running_loop().time(), 1), told))

    async def _spawn(self, member: Member, on_line: Any, fd: int | None) -> FakeChild:
        assert fd == FD
        self.note("start", member.name)
        lives = self.lives.get(member.name, [Life()])
        life = lives.pop(0) if len(lives) > 1 else lives[0]
        if life.code == 127:
            raise FileNotFoundError("no such interpreter")
        for line in life.says:
            on_line(line)
        self.children[member.name] = FakeChild(self, member.name, life, pid=1000 + len(self.order("start")))
        return self.children[member.name]

    async def _condition(self, member: Member) -> str:
        return self.conditions.get(member.name, "")

    async def _check(self, url: str) -> str:
        self.asked.append((asyncio.get_running_loop().time(), url))
        return "" if self.children[url].answers else "connection refused"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def life() -> type[Life]:
    return Life


@pytest.fixture
def member():
    """Make a member; its name stands in for its probe URL."""

    def make(name: str, *needs: str, stage: int = 1, kind: str = "agent") -> Member:
        return Member(
            name=name,
            kind=kind,
            stage=stage,
            command=("x",),
            cwd=Path(),
            env={},
            url=f"http://{name}/mcp",
            health_url=name,
            needs=needs,
        )

    return make


@pytest.fixture
def port() -> int:
    """A port of this machine that nobody listens on."""
    return free_port()


@pytest.fixture
def ports() -> list[int]:
    """Three such ports."""
    return free_ports(3)

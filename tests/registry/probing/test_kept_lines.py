"""Connections that are kept between probes: whose, how many, and for how long."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from pallas_contract.probe.probe import MODERN, Line, Result, Target
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing import kept_lines
from pallas_registry.probing.kept_lines import KeptLines
from pallas_registry.probing.recheck import Recheck
from pallas_registry.probing.scheduler import TOOLS_EVERY, Prober


class Open(Line):
    """A line that says by itself whether it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open = True

    @property
    def kept(self) -> bool:
        return self.open

    def close(self) -> None:
        self.open = False


def endpoint(number: int = 1) -> Endpoint:
    return Endpoint(f"http://harper:{number}/mcp")


async def test_a_line_is_given_to_one_at_a_time() -> None:
    lines = KeptLines(8)
    first, second = Open(), Open()
    lines.give_back(endpoint(), first)
    assert lines.take(endpoint()) is first
    assert lines.take(endpoint()) is not first
    lines.give_back(endpoint(), first)
    lines.give_back(endpoint(), second)
    assert (first.open, second.open, len(lines)) == (True, False, 1)
    lines.close()
    assert (first.open, len(lines)) == (False, 0)


async def test_there_are_never_too_many_and_none_that_is_closed() -> None:
    lines = KeptLines(2)
    given = [Open() for _ in range(3)]
    given[0].open = False
    for number, line in enumerate([*given, Open()]):
        lines.give_back(endpoint(number), line)
    assert len(lines) == 2
    lines.close()


async def test_who_is_no_longer_asked_loses_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now, timers = [0.0], []
    loop = asyncio.get_running_loop()
    later = loop.call_later

    def call_later(delay: float, callback: Callable[..., object], *more: object) -> asyncio.TimerHandle:
        if delay == kept_lines.IDLE:
            timers.append(callback)
        return later(delay, callback, *more)

    monkeypatch.setattr(loop, "call_later", call_later)
    lines = KeptLines(8, clock=lambda: now[0])
    old, used = Open(), Open()
    lines.give_back(endpoint(1), old)
    lines.give_back(endpoint(2), used)
    now[0] = kept_lines.IDLE - 1
    lines.give_back(endpoint(2), lines.take(endpoint(2)))
    now[0] = kept_lines.IDLE
    timers.pop()()
    assert (old.open, used.open, len(timers)) == (False, True, 1)
    now[0] = 2 * kept_lines.IDLE
    timers.pop()()
    assert (used.open, timers) == (False, [])


class Told:
    """A probe that leaves its line as `keeps` says, and remembers which it had and whether that was open."""

    def __init__(self, keeps: bool = True) -> None:
        self.keeps = keeps
        self.had: list[tuple[Line, bool]] = []
        self.found = Result("ok", era=MODERN, name="harper")

    async def __call__(self, target: Target, *, era: str, timeout: float, line: Line | None = None) -> Result:
        assert line is not None
        self.had.append((line, line.known is not None))
        line.known = self.found if self.keeps else None
        line.client = Connected()  # type: ignore[assignment]
        return replace(self.found, tools={} if target.tools else None, listed=0.0 if target.tools else None)


class Connected:
    """A client whose connection is open until it is closed."""

    kept = True

    def close(self) -> None:
        self.kept = False


async def test_an_agent_that_is_well_is_asked_on_one_line_until_its_tools_are_due() -> None:
    now = [0.0]
    lines, ask = KeptLines(8), Told()
    prober = Prober(ask, clock=lambda: now[0], lines=lines)
    found: Result | None = None
    for now[0] in (0.0, 5.0, TOOLS_EVERY - 1, TOOLS_EVERY, TOOLS_EVERY + 5):
        found = await prober.check(endpoint(), found)
        found = replace(found, listed=now[0] if now[0] == TOOLS_EVERY else found.listed)
    assert [known for _, known in ask.had] == [False, True, True, False, True]
    lines.close()


async def test_who_asks_for_a_recheck_hears_what_a_new_connection_finds() -> None:
    lines, ask = KeptLines(8), Told()
    found: list[Result] = [Result("error")]
    prober = Prober(ask, clock=lambda: 0.0, lines=lines)
    recheck = Recheck(
        prober.check,
        lambda _agent, _endpoint, result: found.append(result),
        endpoints=lambda _agent: [endpoint()],
        before=lambda _agent, _endpoint: found[-1],
        clock=itertools.count().__next__,
    )
    for _ in range(2):
        await recheck("harper")
        found.append(await prober.check(endpoint(), found[-1]))
    assert [known for _, known in ask.had] == [False, True, False, True]
    lines.close()


async def test_services_and_those_who_are_not_well_have_no_line() -> None:
    lines, ask = KeptLines(8), Told(keeps=False)
    prober = Prober(ask, lines=lines)
    await prober.check(endpoint(), None)
    assert len(lines) == 0

    async def plainly(target: Target, *, era: str, timeout: float) -> Result:
        return Result("ok")

    assert (await Prober(plainly, lines=lines).check(endpoint()._replace(kind="mcp"), None)).state == "ok"

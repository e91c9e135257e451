"""When and how often replicas are probed, in a time of the tests' own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import capture_logs

from pallas_contract.documents.reason import Reason
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing.scheduler import (
    WAIT,
    Before,
    Check,
    Limits,
    Pace,
    Prober,
    Scheduler,
    next_due,
    phase,
    together,
)

OK, REFUSED = Result("ok", era="2026-07-28"), Result("error", Reason("ConnectionRefused", "connection refused"))


def endpoint(number: int = 1) -> Endpoint:
    return Endpoint("http://harper:8080/mcp", f"10.0.{number // 250}.{number % 250}")


class Asked:
    """A probe that gives the answers of a list, then the last one again, and remembers how it was called."""

    def __init__(self, *answers: Result) -> None:
        self.answers, self.calls = list(answers), []

    async def __call__(self, target, *, era: str, timeout: float) -> Result:
        self.calls.append((target, era, timeout))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_the_tools_are_asked_for_once_a_minute_and_remembered_in_between(time) -> None:
    told = Result("ok", version="1", tools={"a": ToolContract("1")}, listed=0.0)
    ask = Asked(told, Result("ok", version="1"), Result("degraded", Reason("SelfReported", "slow")), told)
    prober, found = Prober(ask, sleep=time.sleep, clock=time.clock), None
    for _ in range(3):
        found = await prober.check(endpoint(), found)
    assert (found.state, found.tools, found.listed) == ("degraded", {"a": ToolContract("1")}, 0.0)
    await time.advance(60)
    await prober.check(endpoint(), found)
    assert [target.tools for target, _, _ in ask.calls] == [True, False, False, True]


async def test_a_list_that_could_not_be_had_changes_nothing_and_is_not_asked_for_at_once(time) -> None:
    told = Result("ok", version="1", tools={"a": ToolContract("1")}, listed=0.0)
    ask = Asked(Result("ok", version="1", listed=60.0))
    prober = Prober(ask, sleep=time.sleep, clock=time.clock)
    found = await prober.check(endpoint(), told)
    assert (found.tools, found.listed) == (told.tools, 60.0)


async def test_another_release_is_asked_for_its_tools_at_once(time) -> None:
    ask = Asked(Result("ok", version="2"))
    prober = Prober(ask, sleep=time.sleep, clock=time.clock)
    found = await prober.check(endpoint(), Result("ok", version="1", tools={"a": ToolContract("1")}, listed=0.0))
    assert found.tools is None
    await prober.check(endpoint(), found)
    assert [target.tools for target, _, _ in ask.calls] == [False, True]


@pytest.mark.parametrize("confirmations", [[OK], [REFUSED, OK]], ids=["first", "second"])
async def test_one_lost_packet_flips_nothing(time, confirmations: list[Result]) -> None:
    ask = Asked(Result("error", Reason("NoAnswer", "no answer in 3 s")), *confirmations)
    check = asyncio.create_task(Prober(ask, sleep=time.sleep).check(endpoint(), OK))
    await time.advance(0.5)
    assert await check == OK
    assert len(ask.calls) == 1 + len(confirmations)


async def test_an_error_needs_two_fast_confirmations_and_keeps_its_first_reason(time) -> None:
    ask = Asked(
        Result("error", Reason("NoAnswer", "no answer in 3 s")), Result("error", Reason("NoAnswer", "no answer in 1 s"))
    )
    check = asyncio.create_task(Prober(ask, sleep=time.sleep).check(endpoint(), OK))
    await time.advance(0.25)
    assert not check.done()
    await time.advance(0.25)
    assert (await check).reason.message == "no answer in 3 s"
    assert [timeout for _, _, timeout in ask.calls] == [3.0, 1.0, 1.0]


@pytest.mark.parametrize(("usual", "given"), [(0.01, 1.0), (0.8, 1.2), (1.9, 2.85), (2.9, 3.0)])
async def test_a_confirmation_may_take_as_long_as_the_agent_always_does(time, usual: float, given: float) -> None:
    ask = Asked(Result("error", Reason("NoAnswer", "no answer in 3 s")), Result("ok", latency=usual))
    check = asyncio.create_task(Prober(ask, sleep=time.sleep).check(endpoint(), Result("ok", latency=usual)))
    await time.advance(0.25)
    assert (await check).state == "ok"
    assert [timeout for _, _, timeout in ask.calls] == pytest.approx([3.0, given])


async def test_a_probe_that_raises_is_an_error_of_its_agent_and_logged(time) -> None:
    async def broken(*_: object, **__: object) -> Result:
        raise OverflowError("Python int too large to convert to C int")

    with capture_logs() as lines:
        check = asyncio.create_task(Prober(broken, sleep=time.sleep).check(endpoint(), OK))
        await time.advance(0.5)
        found = await check
    assert (found.state, found.reason.message, found.era) == (
        "error",
        "the probe failed by itself: OverflowError",
        OK.era,
    )
    wanted = ("a probe failed by itself", "error", endpoint().url, endpoint().ip)
    assert {(line["event"], line["log_level"], line["url"], line["address"]) for line in lines} == {wanted}


async def test_a_registry_is_no_agent() -> None:
    """One that registers with the registry's own URL would have it say what it says of itself, longer each time."""
    ask = Asked(replace(OK, name="pallas-registry"))
    found = await Prober(ask).check(endpoint(), REFUSED)
    assert (found.state, found.reason.code) == ("error", "NotAnAgent")


async def test_what_was_an_error_before_needs_no_confirmation() -> None:
    ask = Asked(REFUSED)
    assert await Prober(ask).check(endpoint(), REFUSED) == REFUSED
    assert len(ask.calls) == 1


async def test_a_probe_is_deep_and_told_the_era_and_the_address() -> None:
    ask = Asked(OK)
    await Prober(ask).check(endpoint(), None)
    await Prober(ask).check(endpoint(), OK)
    (target, before, _), (_, after, _) = ask.calls
    assert (target.url, target.address, target.deep) == ("http://harper:8080/mcp", "10.0.0.1", True)
    assert (before, after) == ("", "2026-07-28")


class Watched:
    """A check that records when it ran, how many at once, and takes as long as told."""

    def __init__(self, time) -> None:
        self.time, self.takes = time, 0.0
        self.at: list[tuple[float, Endpoint]] = []
        self.running = self.most = 0

    async def __call__(self, where: Endpoint, _before: Result | None) -> Result:
        self.at.append((self.time.seconds, where))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.takes:
                await self.time.sleep(self.takes)
        finally:
            self.running -= 1
        return OK


@pytest.fixture
def check(time) -> Watched:
    return Watched(time)


@pytest.fixture
async def scheduler(time, check: Watched) -> AsyncIterator[Callable[..., Scheduler]]:
    async with asyncio.TaskGroup() as group:
        made: list[Scheduler] = []

        def make(
            *,
            instead: Check = check,
            before: Before = lambda *_: None,
            late: Callable[[float], None] = lambda _: None,
            **limits: Any,
        ) -> Scheduler:
            made.append(
                Scheduler(
                    instead,
                    lambda *_: None,
                    before=before,
                    spawn=group.create_task,
                    pace=Pace(interval=lambda: 5.0, clock=time.clock, sleep=time.sleep),
                    late=late,
                    limits=Limits(**limits),
                )
            )
            return made[-1]

        yield make
        for each in made:
            each.retain([])


async def test_the_first_probe_is_at_once_then_one_per_interval(scheduler, check: Watched, time) -> None:
    scheduler().follow("harper", [endpoint()])
    await time.advance(101)
    times = [at for at, _ in check.at]
    assert times[0] == 0.0
    assert 0 < times[1] <= 5.0
    assert [round(after - before, 6) for before, after in pairwise(times[1:])] == [5.0] * 19


@pytest.mark.parametrize(("count", "pause"), [(1, 0.25), (20, 0.5), (40, 1.0), (200, 1.0)])
async def test_one_that_never_answered_is_asked_often_for_a_minute(scheduler, time, count: int, pause: float) -> None:
    """The fewer there are, the more often: a registry that asked each second added half of one to a start of three."""
    at: list[float] = []

    async def down(where: Endpoint, _before: Result | None) -> Result:
        if where == endpoint():
            at.append(time.seconds)
        return Result("error", Reason("ConnectionRefused", "connection refused"))

    scheduler(instead=down).follow("harper", [endpoint(number) for number in range(1, count + 1)])
    await time.advance(100)
    assert [second for second in at if second <= 60] == [number * pause for number in range(int(60 / pause) + 1)]
    assert len([second for second in at if second > 60]) == 8


@pytest.mark.parametrize(
    ("wait", "rounds"),
    [(0.0, 5.0), (3.0, 5.0), (12.0, 12.0), (86400.0, WAIT)],
    ids=["none", "less", "more", "too long"],
)
async def test_who_asks_for_peace_gets_some(scheduler, time, wait: float, rounds: float) -> None:
    at: list[float] = []

    async def refuse(_where: Endpoint, _before: Result | None) -> Result:
        at.append(time.seconds)
        return Result("degraded", Reason("ServiceUnavailable", "cannot answer now (HTTP 503)"), status=503, wait=wait)

    scheduler(instead=refuse).follow("harper", [endpoint()])
    await time.advance(100)
    assert {round(later - before, 6) for before, later in pairwise(at[1:])} == {rounds}


async def test_probes_that_are_due_at_about_the_same_time_begin_at_once(scheduler, check: Watched, time) -> None:
    """Each wake of the process costs more than a probe; and nobody is asked later than an interval after the last."""
    scheduler().follow("harper", [endpoint(number) for number in range(200)])
    await time.advance(60)
    assert len({at for at, _ in check.at if 10 <= at < 15}) == 20
    begun = [at for at, asked in check.at if asked == endpoint(7)][1:]
    assert {later - at for at, later in pairwise(begun)} == {5.0}


@pytest.mark.parametrize(("count", "step"), [(1, 0.25), (200, 0.25), (400, 0.125), (10_000, 0.005)])
def test_the_more_there_are_the_less_a_probe_waits_for_others(count: int, step: float) -> None:
    for due in (100.0, 101.7, 103.333):
        begin = together(due, 5.0, count)
        assert due <= begin < due + step + 1e-9
        assert begin / step == pytest.approx(round(begin / step))


async def test_probes_are_spread_over_the_interval(scheduler, check: Watched, time) -> None:
    scheduler().follow("harper", [endpoint(number) for number in range(200)])
    await time.advance(60)
    by_second = Counter(int(at) for at, _ in check.at if 10 <= at < 60)
    assert len(by_second) == 50
    assert max(by_second.values()) < 3 * 200 / 5


async def test_never_more_at_once_than_allowed(scheduler, check: Watched, time) -> None:
    check.takes = 1.0
    scheduler(slots=8).follow("harper", [endpoint(number) for number in range(40)])
    await time.advance(20)
    assert check.most == 8


async def test_those_that_hang_hold_up_nobody_until_there_is_no_place_left(scheduler, time) -> None:
    places = asyncio.Semaphore(0)
    asked: list[str] = []

    async def hang(where: Endpoint, _before: Result | None) -> Result:
        asked.append(where.url)
        places.release()
        await asyncio.Event().wait()
        return OK

    scheduler(instead=hang, slots=1, connections=3, young=0.01).follow("harper", [endpoint(n) for n in range(5)])
    async with asyncio.timeout(60):
        for _ in range(3):
            await places.acquire()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await places.acquire()
    assert len(asked) == 3


async def test_a_round_knows_what_others_have_found_since(scheduler, time) -> None:
    results: dict[tuple[str, Endpoint], Result] = {}
    told: list[Result | None] = []

    async def remember(_where: Endpoint, before: Result | None) -> Result:
        told.append(before)
        return OK

    scheduler(instead=remember, before=lambda *who: results.get(who)).follow("harper", [endpoint()])
    await time.advance()
    results["harper", endpoint()] = REFUSED  # a recheck's
    await time.advance(5)
    assert told == [None, REFUSED]


async def test_how_late_a_probe_begins_is_told(scheduler, check: Watched, time) -> None:
    late: list[float] = []
    check.takes = 2.0
    scheduler(slots=1, late=late.append).follow("harper", [endpoint(1), endpoint(2)])
    await time.advance(3)
    assert late == [0.0, 2.0]


async def test_a_slow_endpoint_is_not_probed_twice_at_once_nor_caught_up_with(scheduler, check: Watched, time) -> None:
    check.takes = 12.0
    scheduler().follow("harper", [endpoint()])
    await time.advance(100)
    assert check.most == 1
    assert 5 <= len(check.at) <= 9


async def test_one_that_hangs_delays_no_other(scheduler, check: Watched, time) -> None:
    hanging, healthy = endpoint(1), endpoint(2)

    async def hang(where: Endpoint, _before: Result | None) -> Result:
        check.at.append((time.seconds, where))
        if where == hanging:
            await time.sleep(1000)
        return OK

    scheduler(instead=hang).follow("harper", [hanging, healthy])
    await time.advance(100)
    counted = Counter(where for _, where in check.at)
    assert counted[hanging] == 1
    assert counted[healthy] >= 20


async def test_following_the_same_again_starts_nothing(scheduler, check: Watched, time) -> None:
    plan = scheduler()
    for _ in range(3):
        plan.follow("harper", [endpoint(1)])
        await time.advance()
    assert len(check.at) == 1


async def test_a_new_address_is_probed_at_once_and_an_old_one_no_more(scheduler, check: Watched, time) -> None:
    plan = scheduler()
    plan.follow("harper", [endpoint(1)])
    await time.advance(2)
    check.at.clear()
    plan.follow("harper", [endpoint(2)])
    await time.advance()
    assert check.at == [(2.0, endpoint(2))]
    await time.advance(30)
    assert {where for _, where in check.at} == {endpoint(2)}


async def test_what_the_file_dropped_is_no_longer_probed(scheduler, check: Watched, time) -> None:
    plan = scheduler()
    plan.follow("harper", [endpoint(1)])
    plan.follow("research", [endpoint(2)])
    await time.advance()
    plan.retain(["research"])
    check.at.clear()
    await time.advance(30)
    assert {where for _, where in check.at} == {endpoint(2)}


async def test_a_bug_in_a_watch_reaches_the_owner(time) -> None:
    async def broken(_where: Endpoint, _before: Result | None) -> Result:
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError):
        async with asyncio.TaskGroup() as group:
            plan = Scheduler(
                broken,
                lambda *_: None,
                before=lambda *_: None,
                spawn=group.create_task,
                pace=Pace(interval=lambda: 5.0, clock=time.clock),
            )
            plan.follow("harper", [endpoint()])


def test_the_phase_is_the_same_in_every_run() -> None:
    assert phase("harper", endpoint()) == phase("harper", endpoint())
    assert all(0 < phase("harper", endpoint(number)) <= 1 for number in range(1000))


@pytest.mark.parametrize(
    ("due", "now", "expected"),
    [(0.0, 0.1, 5.0), (0.0, 4.9, 5.0), (0.0, 5.0, 10.0), (0.0, 12.0, 15.0), (2.0, 3607.5, 3612.0)],
    ids=["in time", "just in time", "on the dot", "two missed", "after an hour asleep"],
)
def test_missed_rounds_are_left_out(due: float, now: float, expected: float) -> None:
    assert next_due(due, 5.0, 5.0, now) == pytest.approx(expected)

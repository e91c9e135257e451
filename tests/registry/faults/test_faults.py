"""The table of faults: what one agent can do wrong, and what the registry publishes of it, and how soon.

All of them begin at the same moment, against one registry with the intervals it has by default, so the bounds are the
real ones. What is published is taken down by a recorder; the tests read its notes. See README.md for the numbers.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

import pytest

from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing.scheduler import Prober
from tests.registry.faults import misbehaving as bad
from tests.registry.faults.ground import (
    BACK,
    HUNG,
    INTERVAL,
    REFUSED,
    Change,
    Ground,
    Program,
    addresses,
    fleet,
    watched,
)

pytestmark = [pytest.mark.slow, pytest.mark.alone]

WINDOW = 14.0
"""Seconds the faults last: longer than the slowest bound."""
RETRY_AFTER = 7
"""Seconds; more than an interval, or heeding it could not be seen."""
BUSY = 1.0
"""Seconds that a machine with other work is given on top of a bound."""
Subject = bad.Agent | Program
During = Callable[[Subject], AbstractAsyncContextManager[None]]


def behaving(how: bad.Behaviour) -> During:
    @asynccontextmanager
    async def during(agent: Subject) -> AsyncIterator[None]:
        agent.how = how
        yield
        agent.how = bad.well

    return during


@asynccontextmanager
async def stopped(subject: Subject) -> AsyncIterator[None]:
    """Ended, a program with SIGKILL; started again afterwards."""
    await subject.stop()
    yield
    await subject.start()


@asynccontextmanager
async def frozen(program: Subject) -> AsyncIterator[None]:
    program.signal(signal.SIGSTOP)
    yield
    program.signal(signal.SIGCONT)


def late(seconds: float) -> During:
    """By a program of its own: a tenth of a second decides, and the other agents send by the megabyte."""

    @asynccontextmanager
    async def during(program: Subject) -> AsyncIterator[None]:
        program.late(seconds)
        yield
        program.late(0.0)

    return during


@dataclass(frozen=True)
class Fault:
    """A row of the table: `state` is all that may be published while it lasts, `reason` a pattern of what is said.

    `first` is another one, of what may be said to begin with: by a probe that was under way.
    """

    number: int
    name: str
    during: During
    state: str
    reason: str = ""
    within: float = HUNG
    program: bool = False
    first: str = ""

    @property
    def agent(self) -> str:
        return f"f{self.number}-{re.sub('[^a-z0-9]+', '-', self.name.lower())}"


TABLE = [
    Fault(1, "kill -9", stopped, "error", "connection refused", REFUSED, program=True, first="connection (reset|lost)"),
    Fault(1, "nobody listens", stopped, "error", "connection refused", REFUSED, first="connection (reset|lost)"),
    Fault(2, "SIGSTOP", frozen, "error", "no answer in 3 s", program=True),
    Fault(7, "late by 2.9 s", late(2.9), "ok", program=True),
    Fault(7, "late by 3.1 s", late(3.1), "error", "no answer in 3 s", program=True),
    Fault(8, "blackhole", behaving(bad.blackhole), "error", "no answer in 3 s"),
    Fault(8, "half-open", behaving(bad.half_open), "error", "no answer in 3 s"),
    Fault(9, "reset", behaving(bad.reset), "error", "connection reset", REFUSED),
    Fault(9, "cut", behaving(bad.cut), "error", "broken HTTP answer", REFUSED),
    Fault(9, "sliced", behaving(bad.sliced), "ok"),
    Fault(10, "drip", behaving(bad.drip), "error", "no answer in 3 s"),
    Fault(11, "endless events", behaving(bad.endless_events), "error", "answer larger than 64 KiB"),
    Fault(11, "100 MB", behaving(bad.huge), "error", "answer larger than 64 KiB"),
    Fault(11, "endless trailers", behaving(bad.trailers), "error", "answer larger than 64 KiB"),
    Fault(12, "gzip bomb", behaving(bad.gzip_bomb), "error", "compressed answer to a request for an uncompressed one"),
    Fault(13, "invalid JSON", behaving(bad.invalid_json), "error", "not an MCP answer", REFUSED),
    Fault(13, "wrong id", behaving(bad.wrong_id), "error", "not an MCP answer", REFUSED),
    Fault(13, "wrong version", behaving(bad.wrong_version), "degraded", "answers with protocol version", REFUSED),
    Fault(13, "HTML", behaving(bad.html), "error", "not an MCP answer", REFUSED),
    Fault(
        14,
        "redirect to metadata",
        behaving(bad.redirect(302, "http://169.254.169.254/latest/meta-data/")),
        "error",
        "HTTP 302, and redirects are not followed",
        REFUSED,
    ),
    Fault(15, "401", behaving(bad.status(401)), "unauthenticated", "needs credentials", REFUSED),
    Fault(
        15,
        "429",
        behaving(bad.status(429, retry_after=str(RETRY_AFTER))),
        "degraded",
        "asked to slow down",
        REFUSED,
    ),
    Fault(
        15,
        "503",
        behaving(bad.status(503, retry_after=str(RETRY_AFTER))),
        "degraded",
        "cannot answer now",
        REFUSED,
    ),
]
REDIRECT = "f14-redirect-to-another"
FLAPPING = "f16-flapping"
CONTROLS = [f"control-{number}" for number in range(5)]


@dataclass(frozen=True)
class Probed:
    """The states that a prober told one after the other, and how many probes that took."""

    states: tuple[str, str]
    probes: int


@dataclass
class Notes:
    """What the recorder has, and what else was looked at."""

    ground: Ground
    subjects: dict[str, Subject]
    began: float
    ended: float
    left: float
    during: dict[str, tuple[str, str]]
    files: tuple[int, int]
    always_slow: Probed

    def published(self, agent: str, start: float, end: float) -> list[Change]:
        return [change for change in self.ground.changes if change.agent == agent and start <= change.at < end]


@pytest.fixture(scope="module")
def notes(tmp_path_factory) -> Notes:
    """The whole run: all well, all faults, all well again."""
    return asyncio.run(_play(tmp_path_factory.mktemp("faults")))


async def _play(folder) -> Notes:
    subjects: dict[str, Subject] = {
        fault.agent: Program(fault.agent) if fault.program else bad.Agent(fault.agent) for fault in TABLE
    }
    subjects |= {name: bad.Agent(name) for name in (REDIRECT, FLAPPING, *CONTROLS)}
    async with AsyncExitStack() as stack:
        for subject in subjects.values():
            await subject.start()
            stack.push_async_callback(subject.stop)
        stolen = bad.redirect(307, f"http://{subjects[CONTROLS[0]].address}/stolen")
        during = {fault.agent: fault.during for fault in TABLE}
        during |= {REDIRECT: behaving(stolen), FLAPPING: behaving(bad.flapping())}
        port = fleet(folder, list(subjects))
        where = addresses({name: subject.address for name, subject in subjects.items()})
        ground = await stack.enter_async_context(watched(folder, port, PALLAS_ADDRESSES=where))
        await ground.until("ok", subjects)
        files = ground.files()
        began = time.monotonic()
        async with AsyncExitStack() as faults:
            for name, begin in during.items():
                await faults.enter_async_context(begin(subjects[name]))
            slow = asyncio.create_task(_lose_a_probe())  # 7 s of waiting, while the others are waited for
            await asyncio.sleep(WINDOW)  # for the recorder to take down whatever happens: this is the measurement
            seen = await ground.states()
            ended = time.monotonic()
        await ground.until("ok", subjects)
        return Notes(ground, subjects, began, ended, time.monotonic(), seen, (files, ground.files()), await slow)


async def _lose_a_probe() -> Probed:
    """Ask an agent that takes 2 s for each answer, and then once more, when the first probe is lost."""
    agent, prober = bad.Agent("slow", bad.late(2.0)), Prober()
    await agent.start()
    where = Endpoint(f"http://{agent.address}/mcp")
    well = await prober.check(where, None)
    agent.how = bad.once(bad.blackhole, bad.late(2.0))
    again = await prober.check(where, well)
    await agent.stop()
    return Probed((well.state, again.state), len(_probes(agent, 0, time.monotonic())))


@pytest.mark.parametrize("fault", TABLE, ids=lambda fault: f"{fault.number}-{fault.name}")
def test_each_fault_is_published_as_what_it_is_and_in_time(notes: Notes, fault: Fault, record_property) -> None:
    published = notes.published(fault.agent, notes.began, notes.ended)
    assert {change.new for change in published} == {fault.state} - {"ok"}
    state, reason = notes.during[fault.agent]
    assert state == fault.state
    assert re.search(fault.reason, reason), reason
    for change in published:
        record_property(f"{fault.name}: {change.new}", f"{change.at - notes.began:.1f} s, bound {fault.within:g} s")
        assert change.at - notes.began <= fault.within + BUSY
        said = re.search(fault.reason, change.reason) or (fault.first and re.search(fault.first, change.reason))
        assert said, change.reason


@pytest.mark.parametrize("fault", TABLE, ids=lambda fault: f"{fault.number}-{fault.name}")
def test_each_is_ok_again_within_an_interval(notes: Notes, fault: Fault, record_property) -> None:
    back = notes.published(fault.agent, notes.ended, notes.left)
    assert [change.new for change in back] == ([] if fault.state == "ok" else ["ok"])
    for change in back:
        record_property(f"{fault.name}: ok again", f"{change.at - notes.ended:.1f} s, bound {BACK:g} s")
        heeded = RETRY_AFTER if fault.name in ("429", "503") else 0
        assert change.at - notes.ended <= BACK + heeded + BUSY


def test_what_the_registry_says_of_the_others_is_never_wrong(notes: Notes) -> None:
    assert [change for change in notes.ground.changes if change.agent in CONTROLS] == []
    assert [change for change in notes.ground.changes if change.at < notes.began] == []


def test_2_who_hangs_delays_no_other(notes: Notes) -> None:
    for control in CONTROLS:
        gaps = [later - before for before, later in pairwise(_probes(notes.subjects[control], 0, notes.left)[1:])]
        assert max(gaps) <= INTERVAL + BUSY, control


def test_7_a_lost_probe_of_an_agent_that_is_always_slow_flips_nothing(notes: Notes) -> None:
    assert notes.always_slow.states == ("ok", "ok")
    assert notes.always_slow.probes == 3, "one that was lost, and one to confirm it"


def test_8_no_connection_is_left_behind(notes: Notes) -> None:
    before, after = notes.files
    assert after <= before + 2, "a probe or two may just be under way"


def test_14_a_redirect_is_followed_nowhere_and_logged(notes: Notes) -> None:
    assert notes.during[REDIRECT] == ("error", "HTTP 307, and redirects are not followed")
    agents = [each for each in notes.subjects.values() if isinstance(each, bad.Agent)]
    lines = {(asked.line, each.name == "f15-401") for each in agents for asked in each.asked}
    expected = {("POST /mcp HTTP/1.1", True), ("POST /mcp HTTP/1.1", False), ("GET /healthz HTTP/1.1", True)}
    assert lines == expected, "who asks for a token is asked for its open page"
    assert any(REDIRECT in line and "redirects are not followed" in line for line in notes.ground.log)


@pytest.mark.parametrize("agent", ["f15-429", "f15-503"])
def test_15_retry_after_is_heeded_within_an_interval(notes: Notes, agent: str) -> None:
    asked = _probes(notes.subjects[agent], notes.began, notes.ended)
    (gap, *_) = [later - before for before, later in pairwise(asked)]
    assert RETRY_AFTER <= gap <= RETRY_AFTER + INTERVAL


def test_16_flapping_is_published_once_per_interval_at_most(notes: Notes) -> None:
    """An interval is the window of hysteresis: in between there are only confirmations, which publish nothing."""
    published = notes.published(FLAPPING, notes.began, notes.ended)
    assert 1 <= len(published) <= WINDOW / INTERVAL + 1, "down from the first probe on, until after its confirmations"
    assert {change.new for change in published} <= {"ok", "error"}


def _probes(agent: Subject, start: float, end: float) -> list[float]:
    """When probes of this agent began."""
    assert isinstance(agent, bad.Agent)
    return [
        each.at for each in agent.asked if start <= each.at < end and each.message.get("method") == "server/discover"
    ]

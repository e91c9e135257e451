"""Load held: clients on the catalogue, hundreds of agents for minutes, turns through three levels of agents."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.method import fleet as fakes
from benchmarks.method.fleet import Registry
from pallas_testing.fleet import AgentFailed, Fleet, start
from pallas_testing.targets.base import Order
from proof.faults import EXAMPLE
from proof.results import Measure

CLIENTS, WATCHED, INTERVAL = 16, 100, 5.0
AGENTS = 200
MEBIBYTE = 1024**2
QUESTION = "Who looks after the repositories?"
DEADLINE = 30.0
"""Seconds after which a connection or an answer that has not come counts as no 200."""
AT_ONCE = 4
"""Turns under way at the same time."""
REASONS = 10
"""Different reasons of failed turns that are shown, the commonest first."""
_OK = b"200"
_GIVEN_UP = "server_not_attached"
"""The log's event for a server that a turn is without, as it was not connected in time (docs/agent.md)."""
_REASON = 300
"""Characters of a reason."""


@dataclass
class Tally:
    """What clients got: seconds of each answer, and how many were no 200, for what reasons.

    `meanwhile` is what is done to the fleet now, for the reasons. While it `ends` connections by itself, those that
    break off are `ended`; one that cannot be made, or is late, is no 200 all the same.
    """

    seconds: list[float] = field(default_factory=list)
    meanwhile: str = ""
    ends: bool = False
    ended: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def others(self) -> int:
        """How many were no 200."""
        return self.reasons.total()

    def other(self, reason: str) -> None:
        """Count one that was no 200."""
        self.reasons[f"{reason} during {self.meanwhile}" if self.meanwhile else reason] += 1

    def percentile(self, share: float) -> float:
        """Return the time that this share of the answers took at most."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


def clients(seconds: float, agents: int = WATCHED) -> Iterator[Measure]:
    """Yield what 16 clients get at half of their own peak, from a registry that probes and from one that does not."""
    where = _where(agents)
    with ExitStack() as stack:
        port, _ = stack.enter_context(fakes.fakes(list(where.values())))
        addressed = {name: f"{address}:{port}" for name, address in where.items()}
        probing = stack.enter_context(fakes.registry(addressed, INTERVAL))
        quiet = stack.enter_context(fakes.registry(addressed, 300.0))
        for registry in (probing, quiet):
            registry.settled(ok=agents)
        peak = asyncio.run(_ask(probing.url, min(5.0, seconds)))
        rate = len(peak.seconds) / min(5.0, seconds) / 2
        calm = asyncio.run(_ask(quiet.url, min(60.0, seconds), rate))
        held = asyncio.run(_ask(probing.url, seconds, rate))
    yield Measure("b", "requests per second, half of the peak of these clients", values=[rate], unit="/s")
    yield others("b", "answers that are no 200", held)
    worst, usual = held.percentile(0.99) * 1000, calm.percentile(0.99) * 1000
    yield Measure("b", "p99 of a registry that does not probe", values=[usual], unit="ms")
    yield Measure("b", "p99 while it probes", values=[worst], unit="ms", bound=2 * usual)


def others(row: str, what: str, tally: Tally, target: str = "") -> Measure:
    """Return how many answers were no 200; where there was none at all, that is a failure."""
    if not tally.seconds:
        return Measure(row, f"{what}: nothing was answered", target, text=f"FAILED: {tally.others} requests broke off")
    reasons = ", ".join(f"{count} x {reason}" for reason, count in tally.reasons.most_common(REASONS))
    what = f"{what}, of {len(tally.seconds)}{f' ({reasons})' if reasons else ''}"
    return Measure(row, what, target, [tally.others], unit="", bound=0)


@contextmanager
def asked(url: str, rate: float) -> Iterator[Tally]:
    """Have 16 clients ask a registry for its catalogue, `rate` times a second in all, beside what else is done to it.

    The tally that it yields is complete afterwards. What ended the clients before is raised then.
    """
    tally = Tally()
    over = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        asking = executor.submit(lambda: asyncio.run(_clients(url, over.is_set, rate, tally)))
        try:
            yield tally
        finally:
            over.set()
        asking.result()


async def _ask(url: str, seconds: float, rate: float = 0.0) -> Tally:
    """Ask for the catalogue by 16 connections, `rate` times a second in all, or as fast as they are answered."""
    tally = Tally()
    end = time.monotonic() + seconds
    await _clients(url, lambda: time.monotonic() >= end, rate, tally)
    return tally


async def _clients(url: str, over: Callable[[], bool], rate: float, tally: Tally) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(_client(url, over, Pace(rate, number), tally))


@dataclass(frozen=True, slots=True)
class Pace:
    """When client `number` of all asks: evenly, `rate` times a second in all; 0 is as fast as it is answered."""

    rate: float
    number: int

    async def wait(self, began: float, turn: int) -> None:
        """Wait until it is time for a turn, the first of which is 0."""
        if self.rate:
            due = began + (self.number + turn * CLIENTS) / self.rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))


async def _client(url: str, over: Callable[[], bool], pace: Pace, tally: Tally) -> None:
    """Ask by one connection; one that breaks off or is late counts as no 200, and another one follows."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    request = f"GET {fakes.CATALOGUE} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode()
    turns = itertools.count()
    began = time.monotonic()
    while not over():
        writer = None
        try:
            async with asyncio.timeout(DEADLINE):
                reader, writer = await asyncio.open_connection(host, int(port))
            for turn in turns:
                await pace.wait(began, turn)
                if over():
                    break
                sent = time.monotonic()
                writer.write(request)
                async with asyncio.timeout(DEADLINE):
                    status = await _answer(reader)
                tally.seconds.append(time.monotonic() - sent)
                if status != _OK:
                    tally.other(status.decode("ascii", "replace"))
        except (OSError, asyncio.IncompleteReadError) as error:
            if tally.ends and isinstance(error, (ConnectionResetError, asyncio.IncompleteReadError)):
                tally.ended += 1
            else:
                tally.other(type(error).__name__)
            await pace.wait(began, next(turns))
        finally:
            if writer is not None:
                writer.close()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """Return the status of an answer, which has been read to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    await reader.readexactly(int(length[1]) if length else 0)
    return head.split(b" ", 2)[1]


def hundreds(seconds: float, agents: int = AGENTS) -> Iterator[Measure]:
    """Yield what a registry holds and misses while it asks hundreds of agents every five seconds."""
    where = _where(agents)
    with ExitStack() as stack:
        port, _ = stack.enter_context(fakes.fakes(list(where.values())))
        registry = stack.enter_context(fakes.registry({n: f"{a}:{port}" for n, a in where.items()}, INTERVAL))
        registry.settled(ok=agents)
        time.sleep(min(4 * INTERVAL, seconds))  # what is allocated once is not growth
        before, asked = _held(registry), _probes(registry)
        began = time.monotonic()
        held = []
        while time.monotonic() - began < seconds:
            time.sleep(INTERVAL)  # the measurement
            held.append(_held(registry))
        spent = time.monotonic() - began
        missed = max(0, round(spent / INTERVAL - (_probes(registry) - asked) / agents))
        states = {state: count for state, count in registry.states().items() if count}
    yield Measure("a", f"rounds missed in {spent:.0f} s", values=[missed], unit="", bound=0)
    slope, _ = (
        statistics.linear_regression(range(len(held)), [memory for memory, _ in held]) if len(held) > 1 else (0, 0)
    )
    growth = (statistics.median(memory for memory, _ in held[-3:]) - before[0]) / MEBIBYTE
    yield Measure("a", "growth of memory", values=[round(growth, 2)], unit="MiB", bound=1.0)
    hourly = slope / MEBIBYTE * 3600 / INTERVAL
    yield Measure("a", "slope of memory", values=[round(hourly, 2)], unit="MiB/h")
    most = max(count for _, count in held)
    yield Measure("a", "file descriptors, most at once", values=[most], unit="", bound=before[1] + agents)
    yield Measure("a", "states at the end", text=json.dumps(states))


def _held(registry: Registry) -> tuple[int, int]:
    """Return bytes of memory and the count of descriptors."""
    return fakes.resident(registry.pid), len(os.listdir(f"/proc/{registry.pid}/fd"))


def _probes(registry: Registry) -> int:
    counts = re.findall(r"^pallas_registry_probe_duration_seconds_count(?:\{.*\})? (\S+)$", registry.metrics(), re.M)
    return sum(round(float(count)) for count in counts)


def _where(count: int) -> dict[str, str]:
    return {fakes.name(number): fakes.address(number) for number in range(count)}


def turns(count: int, logs: Path) -> Iterator[Measure]:
    """Yield how turns through harper, research and tech_research went, and what is left of them.

    Where one has failed, the logs of all members are in the folder `logs`, and the failures with their times.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        start.running("processes", Order(EXAMPLE / "agents.yaml", Path(folder)), {}) as running,
    ):
        fleet = Fleet(running)
        tally, failures = asyncio.run(_turns(fleet, count))
        given_up = 0
        if failures:
            given_up = sum(fleet.logs(agent).count(_GIVEN_UP) for agent in fleet.agents)
            _write(logs, failures, {member: fleet.logs(member) for member in running.target.file.members})
        left = "none"
        try:
            fleet.no_sessions_left(within=60)
        except AssertionError as error:
            left = f"FAILED: {error}"
    yield Measure("c", f"turns that failed, of {count}", "processes", [len(failures)], unit="", bound=0)
    for reason, times in Counter(failure.reason for failure in failures).most_common(REASONS):
        yield Measure("c", f"failed: {reason}", "processes", [times], unit="")
    if failures:
        what = "connections given up after PALLAS_CONNECT_TIMEOUT (5 s): a turn goes on without these servers"
        yield Measure("c", what, "processes", [given_up], unit="")
    if tally.seconds:
        values = [tally.percentile(0.5), tally.percentile(0.99)]
        yield Measure("c", f"seconds of a turn, p50 and p99, {AT_ONCE} at once", "processes", values)
    yield Measure("c", "sessions and calls left", "processes", text=left)


@dataclass(frozen=True, slots=True)
class Failure:
    """A turn that was not answered as it should be: its number, when it began and how long it took, in seconds."""

    turn: int
    began: float
    seconds: float
    reason: str


async def _turns(fleet: Fleet, count: int) -> tuple[Tally, Sequence[Failure]]:
    """Return the seconds of each turn that was answered, and those that were not."""
    tally = Tally()
    failures: list[Failure] = []
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            began = time.time()
            clock = time.monotonic()
            reason = await _turn(fleet)
            seconds = time.monotonic() - clock
            if reason:
                failures.append(Failure(number, began, seconds, reason))
            else:
                tally.seconds.append(seconds)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return tally, failures


async def _turn(fleet: Fleet) -> str:
    """Ask harper once; return why it was not answered as it should be, empty where it was."""
    try:
        answer = await fleet.agent("harper").send(QUESTION)
    except AgentFailed as error:
        return reason_of(f"harper says: {error}")
    except Exception as error:  # whatever a client raises is a turn that failed, and the next one follows
        return reason_of("; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves(error)))
    names = [
        name for name in ("Research", "Tech Research", "Engineering") if f"{name}, asking from " not in answer.text
    ]
    return f"the answer lacks {', '.join(names)}" if names else ""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group of errors, and one that is none as it is."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def reason_of(text: str) -> str:
    """Return a text in one line without numbers, so that equal failures count as one reason."""
    return re.sub(r"\d+", "#", " ".join(text.split()))[:_REASON].replace("|", "/")


def _write(logs: Path, failures: Sequence[Failure], texts: Mapping[str, str]) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "failures.json").write_text(json.dumps([asdict(failure) for failure in failures], indent=1) + "\n", "utf-8")
    for member, text in texts.items():
        (logs / f"{member}.log").write_text(text, "utf-8")

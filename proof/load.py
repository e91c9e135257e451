"""Load held: clients on the catalogue, hundreds of agents for minutes, turns through three levels of agents."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
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
AT_ONCE = 4
"""Turns under way at the same time."""


@dataclass
class Tally:
    """What clients got: seconds of each answer, and how many were no 200."""

    seconds: list[float] = field(default_factory=list)
    others: int = 0

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
    yield Measure("b", f"answers that are no 200, of {len(held.seconds)}", values=[held.others], unit="", bound=0)
    worst, usual = held.percentile(0.99) * 1000, calm.percentile(0.99) * 1000
    yield Measure("b", "p99 of a registry that does not probe", values=[usual], unit="ms")
    yield Measure("b", "p99 while it probes", values=[worst], unit="ms", bound=2 * usual)


async def _ask(url: str, seconds: float, rate: float = 0.0) -> Tally:
    """Ask for the catalogue by 16 connections, `rate` times a second in all, or as fast as they are answered."""
    tally = Tally()
    end = time.monotonic() + seconds
    await asyncio.gather(*(_client(url, number, end, rate, tally) for number in range(CLIENTS)))
    return tally


async def _client(url: str, number: int, end: float, rate: float, tally: Tally) -> None:
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    request = f"GET {fakes.CATALOGUE} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode()
    began = time.monotonic() + (number / rate if rate else 0)
    for turn in itertools.count():
        if rate:
            await asyncio.sleep(max(0.0, began + turn * CLIENTS / rate - time.monotonic()))
        sent = time.monotonic()
        if sent >= end:
            break
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(length[1]) if length else 0)
        tally.seconds.append(time.monotonic() - sent)
        tally.others += not head.startswith(b"HTTP/1.1 200 ")
    writer.close()


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
    growth = (statistics.median(memory for memory, _ in held[-3:]) - before[0]) / MEBIBYTE
    yield Measure("a", "growth of memory", values=[round(growth, 2)], unit="MiB", bound=1.0)
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


def turns(count: int) -> Iterator[Measure]:
    """Yield how turns through harper, research and tech_research went, and what is left of them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        start.running("processes", Order(EXAMPLE / "agents.yaml", Path(folder)), {}) as running,
    ):
        fleet = Fleet(running)
        seconds, failures = asyncio.run(_turns(fleet, count))
        left = "none" if fleet.no_sessions_left(within=60) else ""
    yield Measure("c", f"turns that failed, of {count}", "processes", [len(failures)], unit="", bound=0)
    for reason, times in sorted(Counter(failures).items()):
        yield Measure("c", f"failed: {reason}", "processes", [times], unit="")
    tally = Tally(list(seconds))
    yield Measure(
        "c",
        f"seconds of a turn, p50 and p99, {AT_ONCE} at once",
        "processes",
        [tally.percentile(0.5), tally.percentile(0.99)],
    )
    yield Measure("c", "sessions and calls left", "processes", text=left)


async def _turns(fleet: Fleet, count: int) -> tuple[Sequence[float], Sequence[str]]:
    """Return the seconds of each turn, and why those failed that were not answered as they should be."""
    seconds: list[float] = []
    failures: list[str] = []
    numbers = iter(range(count))

    async def worker() -> None:
        for _ in numbers:
            began = time.monotonic()
            try:
                answer = await fleet.agent("harper").send(QUESTION)
                failures.extend(_lacking(answer.text))
            except (AgentFailed, TimeoutError) as error:
                failures.append(type(error).__name__)
            seconds.append(time.monotonic() - began)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return seconds, failures


def _lacking(text: str) -> list[str]:
    """Return what an answer of harper's does not quote, as one reason."""
    names = [name for name in ("Research", "Tech Research", "Engineering") if f"{name}, asking from " not in text]
    return [f"the answer lacks {', '.join(names)}"] if names else []

"""Two things are compared in one run, turn about, and only rounds in which the machine was quiet count.

A round measures both; the next one in the other order (A, B, B, A). A fixed loop is timed on both cores before and
after each round: where it took more than a quarter longer than at its best, something else ran, and the round is
dropped and measured again. A figure is the median of the rounds' ratios, with its quartiles.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

CORES = sorted(os.sched_getaffinity(0))
SERVER, LOAD = CORES[0], CORES[-1]
"""The core of what is measured, and that of what measures it; the same one on a machine that has no second."""

TOLERANCE = 1.25
"""How much longer the fixed loop may take before a round is dropped."""
LOOP = 200_000
"""Additions of the fixed loop: some ten milliseconds."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much measuring: rounds per figure, seconds per measurement under load.

    `quick` is for trying whether a benchmark still runs: its figures mean nothing, and no bar is judged.
    """

    rounds: int = 7
    seconds: float = 2.0
    quick: bool = False


FULL = Effort()
QUICK = Effort(rounds=1, seconds=0.3, quick=True)


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: a rate, a duration or a size. `cpu` is the same per CPU-second, or in CPU-seconds, if known."""

    value: float
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles of the rounds that count. `loud`: too few did, so all of them are in it."""

    median: float
    low: float
    high: float
    rounds: int
    dropped: int = 0
    loud: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours over theirs: as the clock saw it, and by CPU-seconds; `ours` and `theirs` are the medians of each."""

    ratio: Spread
    cpu: Spread | None
    ours: float
    theirs: float


@dataclass(frozen=True, slots=True)
class _Round:
    ours: Sample
    theirs: Sample
    loop: float


def compare(ours: Callable[[], Sample], theirs: Callable[[], Sample], effort: Effort) -> Comparison:
    """Measure both, turn about, until `effort.rounds` rounds count; at most twice as many are tried.

    Each is measured once before, for nothing: what a first time costs (imports, caches) is no part of the figure. Where
    the figures mean nothing, neither is done again.
    """
    rounds: list[_Round] = []
    most = effort.rounds
    if not effort.quick:
        most *= 2
        ours()
        theirs()
    best = min(fixed_loop() for _ in range(3))
    while len(_counting(rounds, best)) < effort.rounds and len(rounds) < most:
        before = fixed_loop()
        if len(rounds) % 2:
            second = theirs()
            first = ours()
        else:
            first = ours()
            second = theirs()
        after = fixed_loop()
        best = min(best, before, after)
        rounds.append(_Round(first, second, max(before, after)))
    return _judged(rounds, best)


def _counting(rounds: list[_Round], best: float) -> list[_Round]:
    return [one for one in rounds if one.loop <= TOLERANCE * best]


def _judged(rounds: list[_Round], best: float) -> Comparison:
    counting = _counting(rounds, best)
    loud = 2 * len(counting) < len(rounds)
    used = rounds if loud else counting
    dropped = len(rounds) - len(used)
    by_cpu = [one.ours.cpu / one.theirs.cpu for one in used if one.ours.cpu and one.theirs.cpu]
    return Comparison(
        ratio=spread((one.ours.value / one.theirs.value for one in used), dropped, loud=loud),
        cpu=spread(by_cpu, dropped, loud=loud) if by_cpu else None,
        ours=statistics.median(one.ours.value for one in used),
        theirs=statistics.median(one.theirs.value for one in used),
    )


def spread(values: Iterable[float], dropped: int = 0, *, loud: bool = False) -> Spread:
    found = list(values)
    low, middle, high = statistics.quantiles(found, n=4) if len(found) > 1 else found * 3
    return Spread(middle, low, high, len(found), dropped, loud)


def fixed_loop() -> float:
    """Seconds that a fixed amount of work takes now, on the slower of the two cores."""
    mine = os.sched_getaffinity(0)
    try:
        return max(_loop_on(core) for core in {SERVER, LOAD})
    finally:
        os.sched_setaffinity(0, mine)


def _loop_on(core: int) -> float:
    os.sched_setaffinity(0, {core})
    started = time.perf_counter()
    total = 0
    for number in range(LOOP):
        total += number
    return time.perf_counter() - started

"""How benchmarks are judged: which rounds count, and what is said. Nothing here measures time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat

import pytest

from benchmarks.method import report, side_by_side
from benchmarks.method.report import Bar, Figure, at_least, at_most
from benchmarks.method.side_by_side import Effort, Sample, Spread, compare

QUIET = 0.010


def loops(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
    """The fixed loop takes these, three at the start and then two a round, and is quiet afterwards."""
    told = chain(seconds, repeat(QUIET))
    monkeypatch.setattr(side_by_side, "fixed_loop", lambda: next(told))


def recorder(order: list[str], name: str, value: float) -> Callable[[], Sample]:
    def measure() -> Sample:
        order.append(name)
        return Sample(value, value / 2)

    return measure


def test_the_order_turns_with_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    loops(monkeypatch)
    order: list[str] = []
    found = compare(recorder(order, "A", 3), recorder(order, "B", 2), Effort(rounds=4))
    assert "".join(order) == "AB" + "ABBAABBA", "one of each for warming up, then rounds"
    assert (found.ours, found.theirs, found.ratio.median, found.ratio.rounds) == (3, 2, 1.5, 4)
    assert found.cpu is not None
    assert found.cpu.median == 1.5


def test_a_round_in_which_something_else_ran_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loops(monkeypatch, *repeat(QUIET, 3), QUIET, QUIET * 1.3)
    values = iter([50.0, 99.0, 2.0, 2.0, 2.0])
    found = compare(lambda: Sample(next(values)), lambda: Sample(1.0), Effort(rounds=3))
    assert (found.ratio.median, found.ratio.high, found.ratio.rounds, found.ratio.dropped) == (2.0, 2.0, 3, 1)
    assert found.cpu is None


def test_a_machine_that_is_never_quiet_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    loops(monkeypatch, *repeat(QUIET, 3), *repeat(QUIET * 2, 100))
    found = compare(lambda: Sample(1.0), lambda: Sample(1.0), Effort(rounds=3))
    assert found.ratio.loud
    assert found.ratio.rounds == 6
    assert "NOT QUIET" in report.line(report.ratio("x", found))


@pytest.mark.parametrize(
    ("bar", "median", "verdict"),
    [
        (at_least(1.5), 1.5, "met"),
        (at_least(1.5), 1.4, "NOT MET"),
        (at_most(2), 2.0, "met"),
        (at_most(2), 2.1, "NOT MET"),
    ],
)
def test_a_bar_is_a_least_or_a_most_value(bar: Bar, median: float, verdict: str) -> None:
    assert Figure("x", Spread(median, median, median, 7), bar).verdict == verdict


def test_where_the_machine_was_not_quiet_cpu_decides_and_is_named() -> None:
    loud = Spread(1.4, 1, 2, 7, loud=True)
    assert Figure("x", loud, at_least(1.5), cpu=Spread(1.6, 1, 2, 7)).verdict == "met by CPU"
    assert Figure("x", loud, at_least(1.5), cpu=Spread(1.4, 1, 2, 7)).verdict == "NOT MET by CPU"
    assert Figure("x", loud, at_least(1.5)).verdict == "NOT MET"


def test_the_table_is_markdown_with_aligned_columns() -> None:
    figures = [
        Figure("short", Spread(2.0, 1.0, 3.0, 7), at_least(1.5)),
        Figure("a longer one", Spread(1234.5, 1, 2, 7)),
    ]
    lines = report.table(figures).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == 4
    assert "| short        | 2      | 1 .. 3    |        | >= 1.5 | met |" in lines
    assert "1,234" in lines[3]

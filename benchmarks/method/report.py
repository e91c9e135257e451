"""A figure, the bar it is held against, and how both are told: a line at once, a table at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.method.side_by_side import Comparison, Spread


@dataclass(frozen=True, slots=True)
class Bar:
    """The limit that an issue sets: a least or a most value."""

    limit: float
    least: bool

    def met(self, value: float) -> bool:
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {self.limit:g}"


def at_least(limit: float) -> Bar:
    return Bar(limit, least=True)


def at_most(limit: float) -> Bar:
    return Bar(limit, least=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured. `unit` is empty for a ratio; `detail` says the two sides in absolute terms."""

    what: str
    value: Spread
    bar: Bar | None = None
    unit: str = ""
    cpu: Spread | None = None
    detail: str = ""

    @property
    def verdict(self) -> str:
        """By the clock; where the machine was not quiet, by CPU, which others disturb less."""
        if self.bar is None:
            return ""
        by_cpu = self.cpu if self.value.loud else None
        word = "met" if self.bar.met((by_cpu or self.value).median) else "NOT MET"
        return f"{word} by CPU" if by_cpu else word


def ratio(what: str, found: Comparison, bar: Bar | None = None, unit: str = "") -> Figure:
    """A comparison as a figure; `unit` is that of both sides, for the detail."""
    detail = f"{number(found.ours)} against {number(found.theirs)} {unit}".rstrip()
    return Figure(what, found.ratio, bar, cpu=found.cpu, detail=detail)


def line(figure: Figure) -> str:
    value = figure.value
    parts = [
        f"{figure.what}: {_value(figure)} (quartiles {number(value.low)} to {number(value.high)}, {_rounds(value)})",
        f"by CPU {number(figure.cpu.median)}" if figure.cpu else "",
        figure.detail,
        f"bar {figure.bar}: {figure.verdict}" if figure.bar else "",
    ]
    return "; ".join(filter(None, parts))


def table(figures: Iterable[Figure]) -> str:
    """The figures as a Markdown table, its columns aligned."""
    head = ("what", "median", "quartiles", "by CPU", "bar", "")
    rows = [head, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [_joined(row, widths) for row in rows]
    lines.insert(1, _joined(tuple("-" * width for width in widths), widths))
    return "\n".join(lines)


def number(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _row(figure: Figure) -> tuple[str, ...]:
    value, bar = figure.value, str(figure.bar) if figure.bar else ""
    quartiles = f"{number(value.low)} .. {number(value.high)}"
    cpu = number(figure.cpu.median) if figure.cpu else ""
    return figure.what, _value(figure), quartiles, cpu, bar, figure.verdict


def _value(figure: Figure) -> str:
    return f"{number(figure.value.median)} {figure.unit}".rstrip()


def _rounds(value: Spread) -> str:
    dropped = f", {value.dropped} dropped" if value.dropped else ""
    return f"{value.rounds} rounds{dropped}{', THE MACHINE WAS NOT QUIET' if value.loud else ''}"


def _joined(row: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"

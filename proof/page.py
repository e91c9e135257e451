"""docs/proof.md of what was measured, and nothing else: a row without a measure says that it was not run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from proof.faults import TARGETS
from proof.results import Measure, Step
from proof.rows import SECTIONS, Row

_HEAD = """\
# Proof

Which faults, loads and inputs the kit has to survive, and what was measured in the last long run. A time such as
`4.3 s, worst 5.4 s of 6 (bound 6 s)` is the median of six tries, the longest of them, and the limit for each.

`make proof` runs the long form of each row and writes this page; `make proof PART=load` runs a part of it,
`ARGS='--scale 0.1'` a tenth, and `ARGS=--resume` what has not been run yet. The tests named in
[proof/rows.py](../proof/rows.py) are the short form, and run with every `make test`.

![Time until the registry tells of a fault, beside its bound](pictures/proof.svg)

"""
_STEPS = """\
## When, where, how much
A scale below 1 means that durations and counts were that share of the full ones. The load is the machine's load average
of one minute before the step: with two cores, 2 means that both were busy. Times on a busy machine are upper bounds.

| step | when | commit | scale | seed | machine |
|---|---|---|---|---|---|
"""
_TAIL = """\
## Beside the peers
`make bench` measures ratios; [benchmarks](../benchmarks/README.md) has them, with date and machine.
"""
NOT_RUN = "**not run**"
_SCALED = {"fuzz", "hundreds", "clients", "turns", *(f"faults-{target}" for target in TARGETS)}


def render(steps: Sequence[Step]) -> str:
    """Return the page as Markdown."""
    measures = [measure for step in steps for measure in step.measures]
    parts = [_HEAD, *_missing(steps)]
    for title, rows in SECTIONS.items():
        parts.append(f"## {title}\n| | what | expected | measured |\n|---|---|---|---|\n")
        parts.extend(_row(row, [measure for measure in measures if measure.row == row.number]) for row in rows)
        parts.append("\n")
    parts.append(_STEPS)
    parts.extend(
        f"| {s.name} | {s.date} | {s.commit or 'not noted'} | {s.scale:g} | {s.seed} | {s.machine} |\n" for s in steps
    )
    return "".join([*parts, "\n", _TAIL])


def _missing(steps: Sequence[Step]) -> Iterator[str]:
    """Yield what did not hold, what was not run, and what was run in a smaller form."""
    measures = [measure for step in steps for measure in step.measures]
    if broken := [_broken(measure) for measure in measures if not measure.held]:
        yield f"**Not held:** {'; '.join(broken)}.\n\n"
    if early := [step.name for step in steps if step.commit and not step.whole]:
        yield f"**Ended early:** {', '.join(early)}.\n\n"
    scales = {step.name: step.scale for step in steps}
    run = {measure.row for step in steps for measure in step.measures if _is_long(step.name, measure.row)}
    rows = [row for section in SECTIONS.values() for row in section]
    if names := [f"{row.number} ({row.what})" for row in rows if row.number not in run]:
        yield f"**Not run in the long form:** {'; '.join(names)}. Their short form runs with every `make test`.\n\n"
    if targets := [target for target in TARGETS if f"faults-{target}" not in scales]:
        yield f"**No fault was injected on:** {', '.join(targets)}.\n\n"
    if smaller := [f"{name} at {scale:g}" for name, scale in scales.items() if scale < 1 and name in _SCALED]:
        yield f"**Run at a part of the full scale:** {', '.join(smaller)}.\n\n"


def _broken(measure: Measure) -> str:
    """Return what did not hold: a row with what was measured, or a step with the reason why it ended."""
    if measure.row:
        return f"{measure.row} ({measure.what})"
    return f"{measure.what} ({measure.text.removeprefix('FAILED: ')})"


def _is_long(step: str, row: str) -> bool:
    """Return True where a step is the long form of a row."""
    longs = [entry.long for section in SECTIONS.values() for entry in section if entry.number == row]
    return any(step.startswith(long) for long in longs)  # tests-..., faults-TARGET


def _row(row: Row, measures: Sequence[Measure]) -> str:
    cell = "<br>".join(map(line, measures)) or NOT_RUN
    return f"| {row.number} | {row.what} | {row.expected} | {cell} |\n"


def line(measure: Measure) -> str:
    """Return one measure in words: `compose: kill until error: 3.1 s, worst 5.4 s of 6 (bound 6 s)`."""
    target = f"{measure.target}: " if measure.target else ""
    if not measure.values:
        return f"{target}{measure.what}: {measure.text}"
    unit = f" {measure.unit}" if measure.unit else ""
    if len(measure.values) <= 2:
        values = ", ".join(f"{number(value)}{unit}" for value in measure.values)
    else:
        median, worst = statistics.median(measure.values), max(measure.values)
        values = f"{number(median)}{unit}, worst {number(worst)}{unit} of {len(measure.values)}"
    bound = (
        "" if measure.bound is None else f" (bound {number(measure.bound)}{unit}{'' if measure.held else ', NOT HELD'})"
    )
    return f"{target}{measure.what}: {values}{bound}"


def number(value: float) -> str:
    """Return three digits that mean something, and no point behind a whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"

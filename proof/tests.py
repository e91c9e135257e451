"""The tests that are the short form of a row, run once more for the page, and what they measured on the way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from proof.results import FOLDER, Measure
from proof.rows import Row

_WITH_BOUND = re.compile(r"([0-9.]+) s, bound ([0-9.]+) s")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A test as pytest's report has it: `passed`, `failed` or `skipped`, and what it recorded."""

    test: str
    status: str
    recorded: Sequence[tuple[str, str]]


def run(rows: Sequence[Row], options: Sequence[str] = (), examples: str = "all") -> Iterator[Measure]:
    """Run the tests of these rows in one pytest, and yield for each row how many passed and what they recorded.

    `examples` is the effort of those that draw their input (tests/examples.py).
    """
    FOLDER.mkdir(exist_ok=True)
    report = FOLDER / "tests.xml"
    tests = sorted({test.partition("[")[0] for row in rows for test in row.short})
    command = [sys.executable, "-m", "pytest", "-q", "--junitxml", str(report), "-p", "no:cacheprovider"]
    subprocess.run([*command, *options, *tests], check=False, env=os.environ | {"PALLAS_TEST_EXAMPLES": examples})
    outcomes = list(read(report))
    for row in rows:
        yield from of(row, outcomes)


def read(report: Path) -> Iterator[Outcome]:
    """Yield what a report of pytest (JUnit's XML) says of each test."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        path = f"{case.get('classname', '').replace('.', '/')}.py"
        status = "skipped" if case.find("skipped") is not None else "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            status = "failed"
        recorded = [(entry.get("name", ""), entry.get("value", "")) for entry in case.iter("property")]
        yield Outcome(f"{path}::{case.get('name', '')}", status, recorded)


def of(row: Row, outcomes: Iterable[Outcome]) -> Iterator[Measure]:
    """Yield what the tests of one row say; nothing where none of them was run."""
    mine = [outcome for outcome in outcomes if any(belongs(outcome.test, short) for short in row.short)]
    failed = [outcome.test for outcome in mine if outcome.status == "failed"]
    count = sum(outcome.status == "passed" for outcome in mine)
    if failed:
        yield Measure(row.number, "its tests", text=f"{count} passed, {len(failed)} FAILED: {', '.join(failed)}")
    elif count:
        yield Measure(row.number, "its tests", text=f"{count} passed")
    for outcome in mine:
        yield from (recorded(row.number, name, value) for name, value in outcome.recorded)


def recorded(row: str, name: str, value: str) -> Measure:
    """Return what a test recorded, seconds beside their bound as such."""
    match = _WITH_BOUND.fullmatch(value)
    return (
        Measure(row, name, values=[float(match[1])], bound=float(match[2])) if match else Measure(row, name, text=value)
    )


def belongs(test: str, short: str) -> bool:
    """Return True where a test is the one that a row names, or one of its parametrised ones."""
    return test == short or test.startswith(short if "[" in short else f"{short}[")

"""Every row of the proof has its short form among the tests, so that none rots."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from proof import faults
from proof.__main__ import PARTS, STEPS, selected
from proof.rows import FAULTS, SECTIONS, Row

ROOT = Path(__file__).parents[2]
ROWS = [row for rows in SECTIONS.values() for row in rows]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_its_short_form_is_there(row: Row) -> None:
    assert row.short
    for test in row.short:
        path, _, name = test.partition("[")[0].partition("::")
        names = {
            node.name
            for node in ast.parse((ROOT / path).read_text("utf-8")).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in names or name in _copied(path), f"{test} is gone, and with it the short form of row {row.number}"


def _copied(path: str) -> set[str]:
    """Return the tests of an example that a module of e2e takes in."""
    text = (ROOT / path).read_text("utf-8")
    return {
        node.name
        for folder in (ROOT / "examples").iterdir()
        if f'copied_from("{folder.name}")' in text
        for file in folder.glob("tests/test_*.py")
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_fault_of_the_table_is_a_row() -> None:
    assert [row.number for row in FAULTS] == [str(number) for number in range(1, 25)]
    assert len({row.number for row in ROWS}) == len(ROWS)


def test_every_long_form_is_a_step() -> None:
    names = {step.partition("-")[0] for step in STEPS}
    assert {row.long for row in ROWS} <= names
    injected = {fault.row for fault in faults.FAULTS}
    assert {row.number for row in FAULTS if row.long == "faults"} <= injected <= {row.number for row in FAULTS}


def test_the_parts_are_all_steps_each_once() -> None:
    assert sorted(step for steps in PARTS.values() for step in steps) == sorted(STEPS)
    assert selected([]) == list(STEPS)
    assert selected(["load", "turns", "page"]) == ["hundreds", "clients", "turns"]

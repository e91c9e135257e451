"""docs/seeds.md: each row's tests and decisions are there, and it says truly how much is shown."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.documentation.seeds import KINDS, PAGE, counted, rows

TEXT = PAGE.read_text()
ROWS = tuple(rows(TEXT))
SEEDS = ("000", "001", "002", "003", "004")


@cache
def functions(path: Path) -> frozenset[str]:
    """Return the functions of a module that pytest runs, and those that a test runs because a list names them."""
    tree = ast.parse(path.read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    lists = (node.elts for node in ast.walk(tree) if isinstance(node, ast.List))
    listed = {element.id for elements in lists for element in elements if isinstance(element, ast.Name)}
    collected = path.name.startswith("test_")
    return frozenset(name for name in defined if (collected and name.startswith("test_")) or name in listed)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return what links to the headings of a page end with."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return frozenset(re.sub(r"[^a-z0-9 _-]", "", head.lower()).replace(" ", "-") for head in heads)


def test_each_row_is_shown_or_decided_otherwise_or_not_there_yet() -> None:
    assert [str(row) for row in ROWS if row.kind is None] == []
    assert {row.seed for row in ROWS} == set(SEEDS)


def test_the_tests_of_each_row_are_there() -> None:
    named = [(str(row), name, (PAGE.parent / target).resolve()) for row in ROWS for name, target in row.tests]
    assert [entry for entry in named if not entry[2].is_file() or entry[1] not in functions(entry[2])] == []


def test_the_decisions_of_each_row_are_there() -> None:
    for row in ROWS:
        for target in row.decisions:
            page, _, anchor = target.partition("#")
            assert page.startswith("decisions/") or page in ("design.md", "pallas-contract.md"), row
            assert (PAGE.parent / page).is_file(), row
            assert not anchor or anchor in anchors(PAGE.parent / page), row


def test_no_demand_stands_twice() -> None:
    assert [row for row, count in Counter(map(str, ROWS)).items() if count > 1] == []


def test_the_head_counts_the_rows() -> None:
    counts = {seed: Counter(row.kind for row in ROWS if row.seed == seed) for seed in SEEDS}
    counts["all"] = sum(counts.values(), Counter())
    assert counted(TEXT) == {seed: [count.total(), *(count[kind] for kind in KINDS)] for seed, count in counts.items()}


def test_functions_that_nothing_runs_show_nothing(tmp_path: Path) -> None:
    module = tmp_path / "test_x.py"
    module.write_text("def test_a(): ...\nasync def b(): ...\ndef c(): ...\ndef d(): ...\nLIST = [b]\n")
    assert functions(module) == {"test_a", "b"}
    helpers = tmp_path / "x.py"
    helpers.write_text("def test_a(): ...\n")
    assert functions(helpers) == frozenset()


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("[`test_a`](../tests/test_x.py)", "shown"),
        ("otherwise: [0005](decisions/0005-loopback-by-default.md)", "otherwise"),
        ("otherwise: [0005](decisions/0005-x.md)<br>[`test_a`](../tests/test_x.py)", "otherwise"),
        ("not yet: issue 16", "not yet"),
        ("not yet: issue 16, of examples/05-atlas", "not yet"),
        ("not yet", None),
        ("otherwise", None),
        ("otherwise: it is so", None),
        ("see [0005](decisions/0005-x.md)", None),
        ("[0005](decisions/0005-x.md) [`test_a`](../tests/test_x.py)", None),
    ],
)
def test_a_cell_of_another_form_is_none(cell: str, kind: str | None) -> None:
    (row,) = rows(f"| x | y |\n## Seed 000: x\n| demand | shown by |\n|---|---|\n| it does | {cell} |\n")
    assert row.kind == kind


def test_demands_are_short() -> None:
    assert [str(row) for row in ROWS if len(row.demand) > 120] == []

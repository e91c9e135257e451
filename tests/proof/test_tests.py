"""What the tests of a row say, from pytest's report."""

from __future__ import annotations

from pathlib import Path

from proof import tests
from proof.rows import Row

REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.faults.test_a" name="test_it[1-kill]"><properties>
<property name="kill: error" value="1.5 s"/></properties></testcase>
<testcase classname="tests.faults.test_a" name="test_it[11-huge]"/>
<testcase classname="tests.faults.test_a" name="test_other"><failure>x</failure></testcase>
<testcase classname="tests.faults.test_a" name="test_third"><skipped/></testcase>
</testsuite></testsuites>
"""


def told(report: Path, *short: str) -> list[str]:
    report.write_text(REPORT)
    outcomes = list(tests.read(report))
    return [f"{m.what}: {m.text}" for m in tests.of(Row("1", "x", "y", short), outcomes)]


def test_a_row_has_its_own_tests_and_what_they_recorded(tmp_path: Path) -> None:
    path = "tests/faults/test_a.py::"
    assert told(tmp_path / "r.xml", f"{path}test_it[1-") == ["its tests: 1 passed", "kill: error: 1.5 s"]
    assert told(tmp_path / "r.xml", f"{path}test_it")[0] == "its tests: 2 passed"
    assert told(tmp_path / "r.xml", f"{path}test_third", f"{path}test_gone") == []


def test_seconds_beside_their_bound_are_numbers() -> None:
    measure = tests.recorded("1", "kill: error", "1.5 s, bound 6 s")
    assert (measure.values, measure.bound, measure.unit) == ([1.5], 6.0, "s")
    assert tests.recorded("18", "back", "3.1 s; its imports alone take 2 s").values == ()


def test_a_failure_is_named(tmp_path: Path) -> None:
    path = "tests/faults/test_a.py::"
    (line,) = told(tmp_path / "r.xml", f"{path}test_other", f"{path}test_it[11-")
    assert line == f"its tests: 1 passed, 1 FAILED: {path}test_other"

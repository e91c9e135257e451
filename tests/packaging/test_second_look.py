"""`make test`: a test that failed is run once more, alone, and is named where it passes then (decision 0051)."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from tests.packaging.test_tools_test import ROUNDS, Copy
from tools import totals

SUITE = """\
from pathlib import Path
import pytest

class TestLuck:
    @pytest.mark.parametrize("how", ["by::chance [1]/x.py"])
    def test_of_the_second(self, how):
        seen = Path("seen")
        first = not seen.exists()
        seen.touch()
        assert not first, "what went wrong at first"

def test_well():
    pass

def test_broken():
    assert Path("mended").exists(), "what is always wrong"
"""
LUCKY = "tests/test_luck.py::TestLuck::test_of_the_second[by::chance [1]/x.py]"


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Copy:
    """With a file of tests for each round, which its report names."""
    copy = Copy(root, tmp_path)
    for name in ROUNDS:
        copy.script(f"tests/{name}.py", "")
    copy.lists(f"tests/{name}.py::test_it" for name in ROUNDS)
    return copy


@pytest.fixture
def suite(copy: Copy) -> Copy:
    """With real tests in the first round and in the second look."""
    copy.script("suite", "")
    copy.script("tests/test_luck.py", SUITE)
    others = [f"tests/test_luck.py::{name}" for name in ("test_well", "test_broken")]
    copy.lists([LUCKY, *others, *(f"tests/{name}.py::test_it" for name in ROUNDS[1:])])
    copy.script("pytest.ini", "[pytest]\naddopts = -p xdist -p pytest_timeout -p no:cacheprovider\n")
    return copy


def test_a_test_that_passes_at_second_sight_is_unsteady(suite: Copy) -> None:
    suite.script("mended", "")
    done = suite.run(".ci/run", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 0, done.stdout
    assert "what went wrong at first" in done.stdout
    assert done.stdout.splitlines()[-2:] == [
        "6 passed, 0 failed, 1 unsteady",
        f"UNSTEADY {LUCKY} (failed, as shown above; passed alone)",
    ]


def test_a_test_that_fails_twice_fails_the_run_beside_one_that_is_unsteady(suite: Copy) -> None:
    done = suite.run("tools/test", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", GITHUB_ACTIONS="true")
    assert done.returncode == 1
    assert done.stdout.count("AssertionError: what is always wrong") >= 2
    assert "5 passed, 1 failed, 1 unsteady" in done.stdout
    assert done.stdout.splitlines()[-1] == f"::warning title=Unsteady test::{LUCKY} failed, and passed alone"


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("again", ["passes", "fails", "crashes"])
def test_a_test_of_any_round_has_a_second_look(copy: Copy, name: str, again: str) -> None:
    copy.script(f"fail-{name}", "")
    if again != "passes":
        copy.script("fail-again" if again == "fails" else "crash-again", "")
    done = copy.run("tools/test", FAILED=name)
    assert copy.rounds[5:] == [
        line for line in copy.rounds if line.endswith(f" --timeout 600 tests/{name}.py::test_it")
    ]
    assert done.returncode == {"passes": 0, "fails": 1, "crashes": 3}[again]
    counts = "4 passed, 0 failed, 1 unsteady" if again == "passes" else "4 passed, 1 failed"
    assert counts in done.stdout.splitlines()[-2:]


def test_who_wants_none_has_none(copy: Copy) -> None:
    copy.script("fail-pods", "")
    done = copy.run("tools/test", PALLAS_TEST_STRICT="1")
    assert (done.returncode, done.stdout.splitlines()[-1], len(copy.rounds)) == (1, "4 passed, 1 failed", 5)


def test_where_a_round_has_crashed_nothing_is_looked_at_again(copy: Copy) -> None:
    copy.script("fail-quick", "")
    copy.script("crash-waiting", "")
    done = copy.run("tools/test")
    assert (done.returncode, done.stdout.splitlines()[-1], len(copy.rounds)) == (3, "3 passed, 2 failed", 5)


def report(folder: Path, *failed: str) -> Path:
    """Return a report of these failures, `MODULE TEST` each, and of a test that passed."""
    cases = [case.partition(" ") for case in failed]
    texts = [f"<testcase classname={quoteattr(a)} name={quoteattr(b)}><error/></testcase>" for a, _, b in cases]
    path = folder / f"{len(failed)}.xml"
    path.write_text(f"<testsuites><testcase classname='tests.a' name='test_well'/>{''.join(texts)}</testsuites>")
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with one file of tests."""
    monkeypatch.chdir(tmp_path)
    Path("tests").mkdir()
    Path("tests/a.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("failed", "looked_at"),
    [
        ([f"tests.a test_{number}" for number in range(3)], [f"tests/a.py::test_{number}" for number in range(3)]),
        ([f"tests.a test_{number}" for number in range(4)], []),
        (["tests.a test_0", "tests.a test_0"], ["tests/a.py::test_0"]),
        (["tests.a test_0", " tests.a"], []),
        ([], []),
    ],
    ids=["three", "four", "twice", "unreadable", "none"],
)
def test_few_tests_are_looked_at_again_and_nothing_else(
    files: Path, capsys: pytest.CaptureFixture[str], failed: list[str], looked_at: list[str]
) -> None:
    assert totals.main(["--failed", str(report(files, *failed))]) == 0
    assert capsys.readouterr().out.splitlines() == looked_at


def test_a_test_that_took_its_process_along_is_no_chance(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As pytest-xdist reports it; the second look would be in a process of its own, and pass."""
    crashed = report(files, "tests.a test_0")
    text = "worker 'gw0' crashed while running 'tests/a.py::test_0'"
    crashed.write_text(crashed.read_text().replace("<error/>", f"<error message='failed on setup'>{text}</error>"))
    assert totals.main(["--failed", str(crashed)]) == 0
    assert capsys.readouterr().out == ""


def test_a_lost_report_is_no_chance(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert totals.main(["--failed", str(report(files, "tests.a test_0")), "lost.xml"]) == 0
    assert capsys.readouterr().out == ""


def test_what_was_skipped_at_second_sight_has_not_passed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = files / "again.xml"
    again.write_text("<testsuites><testcase classname='tests.a' name='test_0'><skipped/></testcase></testsuites>")
    assert totals.main(["--again", str(again), str(report(files, "tests.a test_0"))]) == 1
    assert "1 passed, 1 failed" in capsys.readouterr().out


@pytest.mark.parametrize("ci", ["", "1"])
def test_what_was_skipped_has_not_run_where_ci_is_set(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    skipped = report(files, "tests.a test_0")
    skipped.write_text(skipped.read_text().replace("<error/>", "<skipped/>"))
    assert totals.main([str(skipped)]) == (1 if ci else 0)
    assert ("NOT RUN tests/a.py::test_0" in capsys.readouterr().out) is bool(ci)


def test_only_the_first_of_many_that_have_not_run_are_named(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("TESTS").write_text("".join(f"tests/a.py::test_{number}\n" for number in range(30)))
    assert totals.main(["--listed", "TESTS", str(report(files))]) == 1
    named = [line for line in capsys.readouterr().out.splitlines() if line.startswith("NOT RUN")]
    assert (len(named), named[0], named[-1]) == (21, "NOT RUN tests/a.py::test_0", "NOT RUN 10 more")

"""The page and the picture: what was measured, in words and bars, and nothing that was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proof import __main__ as command
from proof import page, picture, results
from proof.results import Measure, Step
from proof.rows import SECTIONS

DOCS = Path(__file__).parents[2] / "docs"
STEP = Step("faults-compose", "2026-11-23 03:00 UTC", "a machine", 0.1, 7, commit="abc", whole=True)


def of(*measures: Measure) -> list[Step]:
    return [replace(STEP, measures=measures)]


def test_the_page_and_the_picture_are_those_of_the_results() -> None:
    steps = results.read(DOCS / "proof.json")
    assert page.render(steps) == (DOCS / "proof.md").read_text("utf-8")
    assert picture.render(steps) == (DOCS / "pictures" / "proof.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        (
            Measure("1", "kill", "compose", [2.0, 3.21, 5.5], bound=6.0),
            "compose: kill: 3.21 s, worst 5.5 s of 3 (bound 6 s)",
        ),
        (
            Measure("1", "kill", "compose", [2.0, 3.0, 6.5], bound=6.0),
            "compose: kill: 3 s, worst 6.5 s of 3 (bound 6 s, NOT HELD)",
        ),
        (Measure("b", "no 200", values=[0], unit="", bound=0), "no 200: 0 (bound 0)"),
        (Measure("b", "rate", values=[1234.6], unit="/s"), "rate: 1,235 /s"),
        (Measure("5", "its tests", text="1 passed"), "its tests: 1 passed"),
    ],
)
def test_a_measure_in_words(measure: Measure, text: str) -> None:
    assert page.line(measure) == text


def test_what_was_not_run_or_did_not_hold_is_said_first() -> None:
    text = page.render(
        of(Measure("1", "kill", "compose", [7.0], bound=6.0), Measure("2", "its tests", text="1 FAILED"))
    )
    head = text.partition("## ")[0]
    assert "**Not held:** 1 (kill); 2 (its tests)." in head
    assert "1 (kill -9 of an agent)" not in head
    assert "3 (container removed, its name gone)" in head
    assert text.count(page.NOT_RUN) == sum(map(len, SECTIONS.values())) - 2


def test_steps_are_read_as_they_were_written(tmp_path: Path) -> None:
    (step,) = of(Measure("1", "kill", "compose", (7.0,), bound=6.0))
    results.write(step, tmp_path)
    (again,) = results.read(tmp_path)
    assert (again.name, again.scale, again.measures[0].what) == ("faults-compose", 0.1, "kill")
    assert not again.measures[0].held
    (tmp_path / "all.txt").write_text(results.together([again]))
    assert results.together(results.read(tmp_path / "all.txt")) == results.together([again])


def test_the_newest_of_each_step_counts(tmp_path: Path) -> None:
    """Whether it was published with the page or run since."""
    published = tmp_path / "proof.json"
    old, other = replace(STEP, date="2026-11-22 03:00 UTC"), replace(STEP, name="turns")
    assert results.newest(published, tmp_path / "none") == []
    published.write_text(results.together([old, other]))
    results.write(STEP, tmp_path / "run")
    assert results.newest(published, tmp_path / "run") == [STEP, other]
    results.write(replace(STEP, date="2026-11-21 03:00 UTC"), tmp_path / "run")
    assert results.newest(published, tmp_path / "run") == [old, other]


@pytest.mark.parametrize(
    ("changed", "there"),
    [({}, True), ({"scale": 0.05}, True), ({"scale": 1}, False), ({"commit": "def"}, False), ({"seed": 8}, False)],
)
def test_what_was_run_as_a_whole_is_not_run_again(tmp_path: Path, changed: dict[str, Any], there: bool) -> None:
    wanted = replace(STEP, **changed)
    assert not results.has(wanted, tmp_path)
    results.write(STEP, tmp_path)
    assert results.has(wanted, tmp_path) is there
    results.write(replace(STEP, whole=False), tmp_path)
    assert not results.has(wanted, tmp_path)


def test_a_step_that_ends_early_keeps_what_it_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(scale: float, seed: int) -> Iterator[Measure]:
        yield Measure("1", "kill", "compose", [1.0])
        raise TimeoutError("harper: not ok after 300 s")

    monkeypatch.chdir(tmp_path)
    command._run(replace(STEP, whole=False), measured)
    (step,) = results.read(results.FOLDER)
    assert [measure.what for measure in step.measures] == ["kill", "the step faults-compose"]
    assert not step.whole
    head = page.render([step]).partition("## ")[0]
    assert "**Not held:** the step faults-compose (TimeoutError: harper: not ok after # s)." in head
    assert "**Ended early:** faults-compose." in head


def test_a_bar_is_as_long_as_its_seconds_and_red_beyond_its_bound() -> None:
    good, bad = (Measure("1", "kill", "compose", [3.0], bound=bound) for bound in (6.0, 2.0))
    assert 'width="210.0" height="14" fill="#2da44e"/>' in picture.render(of(good))
    assert 'fill="#cf222e"' in picture.render(of(bad))
    assert "<rect" not in picture.render(of(Measure("b", "rate", values=[3.0], unit="/s"))).partition("</text>")[2]

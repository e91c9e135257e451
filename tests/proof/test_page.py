"""The page and the picture: what was measured, in words and bars, and nothing that was not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proof import page, picture, results
from proof.results import Measure, Step
from proof.rows import SECTIONS

DOCS = Path(__file__).parents[2] / "docs"
STEP = Step("faults-compose", "2026-11-23 03:00 UTC", "a machine", 0.1, 7, ())


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


def test_a_bar_is_as_long_as_its_seconds_and_red_beyond_its_bound() -> None:
    good, bad = (Measure("1", "kill", "compose", [3.0], bound=bound) for bound in (6.0, 2.0))
    assert 'width="210.0" height="14" fill="#2da44e"/>' in picture.render(of(good))
    assert 'fill="#cf222e"' in picture.render(of(bad))
    assert "<rect" not in picture.render(of(Measure("b", "rate", values=[3.0], unit="/s"))).partition("</text>")[2]

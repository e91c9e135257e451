"""The bars of uptime: trouble is never too short to be seen, and nothing is rounded up to 100 %."""

from __future__ import annotations

import pytest

from pallas_registry.state.uptime import Window
from pallas_registry.status_page.timeline import BAR, HEIGHT, draw, percent


def test_equal_neighbours_are_one_rectangle() -> None:
    line = draw([(60, 0, 0)] * 60)
    assert (line.width, line.paths) == (60 * BAR, (("well", f"M0,0h{60 * BAR}v{HEIGHT}h-{60 * BAR}z"),))


def test_a_second_of_trouble_is_seen_in_front() -> None:
    line = draw([(0, 0, 0), (59, 0, 1), (0, 60, 0)])
    assert line.paths == (
        ("well", f"M4,0h8v{HEIGHT}h-8z"),
        ("reduced", f"M8,0h4v{HEIGHT}h-4z"),
        ("down", f"M4,{HEIGHT - 5}h4v5h-4z"),
    )


def test_nothing_known_has_no_bar() -> None:
    assert draw([(0, 0, 0)] * 3).paths == ()


@pytest.mark.parametrize(
    ("up", "known", "text"),
    [
        (0, 0, ""),
        (10, 10, "100 %"),
        (86399.9, 86400, "99.9 %"),
        (1, 3, "33.3 %"),
        (0, 60, "0.0 %"),
        (999, 1000, "99.9 %"),
    ],
)
def test_percent(up: float, known: float, text: str) -> None:
    assert percent(Window(up, known)) == text

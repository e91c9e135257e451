"""The graph: callers left of what they call, nothing on top of anything, and a bound on how much is drawn."""

from __future__ import annotations

import itertools
import random

from pallas_registry.status_page.graph_layout import HEIGHT, MOST, WIDTH, draw
from pallas_registry.status_page.overview import Node


def nodes(*names: str, **states: str) -> list[Node]:
    return [Node(name, name, states.get(name, "ok")) for name in names]


def test_callers_are_left_of_what_they_call() -> None:
    drawing = draw(nodes("c", "b", "a"), [("a", "b"), ("b", "c"), ("a", "c")])
    at = {box.node.name: box.x for box in drawing.boxes}
    assert at["a"] < at["b"] < at["c"]
    assert len(drawing.lines) == 3


def test_a_line_goes_from_the_right_side_of_the_caller_to_the_left_side_of_the_called() -> None:
    drawing = draw(nodes("a", "b"), [("a", "b")])
    caller, called = (next(box for box in drawing.boxes if box.node.name == name) for name in "ab")
    (line,) = drawing.lines
    assert line.path.startswith(f"M{caller.x + WIDTH},{caller.y + HEIGHT // 2} C")
    assert line.path.endswith(f" {called.x},{called.y + HEIGHT // 2}")


def test_boxes_never_overlap_and_fit_the_drawing() -> None:
    dice = random.Random(7)
    names = [f"n{number}" for number in range(40)]
    edges = [(a, b) for a, b in itertools.combinations(names, 2) if dice.random() < 0.06]
    drawing = draw(nodes(*names), edges)
    for one, other in itertools.combinations(drawing.boxes, 2):
        assert abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - WIDTH
        assert 0 <= box.y <= drawing.height - HEIGHT


def test_a_line_between_two_in_trouble_is_hot() -> None:
    drawing = draw(nodes("a", "b", "c", a="degraded", b="error"), [("a", "b"), ("a", "c")])
    assert [line.hot for line in drawing.lines] == [True, False]


def test_a_straight_row_has_no_crossing() -> None:
    drawing = draw(nodes("a", "b", "x", "y"), [("a", "y"), ("b", "x")])
    at = {box.node.name: box.y for box in drawing.boxes}
    assert (at["a"] < at["b"]) == (at["y"] < at["x"])


def test_a_big_fleet_shows_who_is_in_trouble_and_what_they_touch() -> None:
    names = [f"n{number}" for number in range(200)]
    drawing = draw(nodes(*names, n5="error"), [("n4", "n5"), ("n6", "n7")])
    assert {box.node.name for box in drawing.boxes} == {"n4", "n5"}
    assert (len(drawing.lines), drawing.omitted) == (1, 198)


def test_never_more_than_the_bound() -> None:
    names = [f"n{number}" for number in range(300)]
    drawing = draw(nodes(*names, **dict.fromkeys(names, "error")), [])
    assert (len(drawing.boxes), drawing.omitted) == (MOST, 300 - MOST)


def test_nothing_to_draw() -> None:
    assert draw([], []).boxes == ()

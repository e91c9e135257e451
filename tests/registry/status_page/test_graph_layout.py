"""The graph: callers left of what they call, nothing on top of anything, and a bound on how much is drawn."""

from __future__ import annotations

import itertools
import random

from pallas_registry.status_page.graph import Node
from pallas_registry.status_page.graph_layout import DEEPEST, HEIGHT, MOST_LINES, TALLEST, WIDTH, draw, levels


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
    assert [line.hot for line in drawing.lines] == [False, True], "on top of the others"


def test_a_straight_row_has_no_crossing() -> None:
    drawing = draw(nodes("a", "b", "x", "y"), [("a", "y"), ("b", "x")])
    at = {box.node.name: box.y for box in drawing.boxes}
    assert (at["a"] < at["b"]) == (at["y"] < at["x"])


def test_a_big_level_shows_who_is_in_trouble_and_the_others_in_one_box() -> None:
    names = [f"n{number}" for number in range(200)]
    drawing = draw(nodes(*names, n5="error", n9="degraded"), [("n4", "n5"), ("n6", "n7")])
    titles = {box.node.title: (box.members, box.node.state) for box in drawing.boxes}
    assert titles == {"n5": (1, "error"), "n7": (1, "ok"), "n9": (1, "degraded"), "197 agents": (197, "ok")}
    assert (len(drawing.lines), drawing.grouped) == (2, 197), "each line of the one box is drawn once"


def test_more_trouble_than_there_is_room_for_stands_in_a_box_of_its_own() -> None:
    names = [f"n{number}" for number in range(300)]
    drawing = draw(nodes(*names, **dict.fromkeys(names[:250], "error")), [])
    assert [box.members for box in drawing.boxes] == [1] * (TALLEST - 2) + [242, 50]
    assert [box.node.state for box in drawing.boxes[-2:]] == ["error", "ok"]
    assert drawing.grouped == 292


def test_the_one_that_is_looked_at_has_its_own_box_with_those_around_it() -> None:
    agents = [f"a{number}" for number in range(50)]
    edges = [("top", agent) for agent in agents] + [(agent, "base") for agent in agents] + [("base", "deep")]
    every = nodes("top", *agents, "base", "deep", "apart")
    near = draw(every, edges, focus="a7")
    assert {box.node.name for box in near.boxes} == {"top", "a7", "base"}
    assert {box.node.name for box in draw(every, edges, focus="a7", steps=2).boxes} == {"top", "a7", "base", "deep"}
    callers = draw(every, edges, focus="base")
    assert {box.node.title for box in callers.boxes} == {"50 agents", "base", "deep"}
    assert len(draw(every, edges, focus="nobody").boxes) == len(draw(every, edges).boxes), "as without one"


def test_a_circle_of_soft_edges_is_drawn_and_not_followed_for_ever() -> None:
    circle = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    assert levels(nodes("a", "b", "c", "d"), circle) == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert len(draw(nodes("a", "b", "c", "d"), circle, focus="a", steps=3).boxes) == 4


def test_a_chain_is_no_wider_than_the_bound() -> None:
    names = [f"n{number}" for number in range(100)]
    drawing = draw(nodes(*names), list(itertools.pairwise(names)))
    assert len(drawing.levels) == DEEPEST
    assert (len(drawing.boxes), drawing.grouped) == (DEEPEST, 100 - DEEPEST + 1)


def test_what_is_outside_and_nobody_names_stands_last() -> None:
    server = Node("search", "Search", "service", kind="server")
    assert levels([server, *nodes("a", "b")], [("a", "b")])["search"] == 1


def test_lines_are_bounded_and_the_hot_ones_stay() -> None:
    names = [f"n{number}" for number in range(40)]
    edges = list(itertools.combinations(names, 2))
    drawing = draw(nodes(*names, n38="error", n39="error"), edges)
    assert len(drawing.lines) <= MOST_LINES
    assert sum(line.hot for line in drawing.lines) <= 1


def test_any_graph_is_drawn_in_bounds() -> None:
    """Random ones, with circles and of any shape."""
    dice = random.Random(11)
    for _ in range(60):
        names = [f"n{number}" for number in range(dice.randint(1, 70))]
        edges = list({(dice.choice(names), dice.choice(names)) for _ in range(dice.randint(0, 160))})
        states = {name: dice.choice(("ok", "error", "suspect", "starting", "unknown")) for name in names}
        edges = [(a, b) for a, b in edges if a != b]
        drawing = draw(nodes(*names, **states), edges, focus=dice.choice([*names, ""]), steps=dice.randint(1, 3))
        assert len(drawing.boxes) <= DEEPEST * TALLEST
        assert len({(box.x, box.y) for box in drawing.boxes}) == len(drawing.boxes)
        assert all(box.x + WIDTH <= drawing.width and box.y + HEIGHT <= drawing.height for box in drawing.boxes)


def test_nothing_to_draw() -> None:
    assert draw([], []).boxes == ()

"""Shapes against each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pallas_gen.running import differences
from pallas_gen.running.differences import Running, Shape

SHAPE = Shape(image="kit:1", command=("-m", "x"), variables=("A", "B"), networks=("n",))


def lines(running: Running | None, replicas: int = 1) -> list[str]:
    found = differences.problems(
        {"a": (SHAPE, replicas)}, {"a": running} if running else {}, place="p", start="start it", anew="make it anew"
    )
    return [f"{problem.where}: {problem.message} ({problem.hint})" for problem in found]


@pytest.mark.parametrize(
    ("running", "replicas", "expected"),
    [
        (Running((SHAPE,), 1), 1, []),
        (None, 1, ["p a: does not run (start it)"]),
        (Running((SHAPE,), 0, "paused"), 1, ["p a: does not run (paused) (start it)"]),
        (Running((SHAPE,), 1, "exited"), 3, ["p a: 1 of 3 replicas run (exited) (start it)"]),
        (Running((SHAPE,), 5), 3, []),
    ],
)
def test_replicas(running: Running | None, replicas: int, expected: list[str]) -> None:
    assert lines(running, replicas) == expected


def test_each_shape_of_a_program_is_compared() -> None:
    edited = replace(SHAPE, variables=("B", "C"), read_only=False)
    assert lines(Running((SHAPE, edited), 2), 2) == [
        "p a.variables: has C and lacks A, unlike the plan (make it anew)",
        "p a.read_only: is False, and True in the plan (make it anew)",
    ]

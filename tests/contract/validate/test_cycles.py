"""Cycles of a graph: the shortest from where each begins, and a bounded number of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from pallas_contract.validate.cycles import MAX_CYCLES, cycles


def graph(text: str) -> dict[str, list[str]]:
    """`a-bc b-a`: a has edges to b and c, b to a."""
    edges = {node: sorted(peers) for node, _, peers in (part.partition("-") for part in text.split())}
    return {node: [] for peers in edges.values() for node in peers} | edges


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-b b-c", []),
        ("a-a", []),
        ("a-ab b-c c-a", ["abc"]),
        ("b-c c-a a-b", ["abc"]),
        ("a-bd b-c c-d d-a", ["ad", "bcda"]),
        ("a-b b-a c-d d-c", ["ab", "cd"]),
        ("a-b b-a c-ad d-c", ["ab", "cd"]),
        ("x-abc a-b b-c c-ad", ["abc"]),
        ("a-bc b-a c-a", ["ab", "ca"]),
    ],
)
def test_cycles_from_the_first_name_in_each(text: str, expected: list[str]) -> None:
    assert ["".join(cycle) for cycle in cycles(graph(text))] == expected


class Counted(Mapping[str, list[str]]):
    """A graph that counts how often the edges of a node are asked for."""

    def __init__(self, edges: dict[str, list[str]]) -> None:
        self.edges, self.reads = edges, Counter[str]()

    def __getitem__(self, node: str) -> list[str]:
        self.reads[node] += 1
        return self.edges[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self.edges)

    def __len__(self) -> int:
        return len(self.edges)


def chain(size: int) -> dict[str, list[str]]:
    return {f"a{number}": [f"a{number + 1}"] for number in range(size)} | {f"a{size}": []}


def ring(size: int) -> dict[str, list[str]]:
    return chain(size - 1) | {f"a{size - 1}": ["a0"]}


def hub(size: int) -> dict[str, list[str]]:
    return {f"a{number}": ["hub"] for number in range(size)} | {"hub": [f"a{number}" for number in range(size)]}


@pytest.mark.parametrize(("made", "expected"), [(chain, 0), (ring, 1), (hub, MAX_CYCLES)])
def test_no_node_is_visited_more_than_a_fixed_number_of_times(made, expected: int) -> None:
    counted = Counted(made(5000))
    assert len(list(cycles(counted))) == expected
    assert max(counted.reads.values()) <= 2 + MAX_CYCLES

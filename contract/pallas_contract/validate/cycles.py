"""Cycles of a directed graph, in time that grows with its nodes and edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Graph = Mapping[str, Sequence[str]]
"""Node -> the nodes it has an edge to."""

MAX_CYCLES = 20
"""Each costs a walk through its part of the graph; the others are reported once these are broken."""


def cycles(graph: Graph) -> Iterator[list[str]]:
    """Yield up to `MAX_CYCLES` cycles of two and more nodes, each from the node that sorts first among its uncovered.

    Together they touch every node that is on a cycle, unless there are more of them.
    """
    count = 0
    for component in sorted(sorted(component) for component in _components(graph) if len(component) > 1):
        members = set(component)
        covered: set[str] = set()
        for start in component:
            if start in covered:
                continue
            if count == MAX_CYCLES:
                return
            cycle = _shortest(graph, start, members)
            covered.update(cycle)
            count += 1
            yield cycle


def _shortest(graph: Graph, start: str, members: set[str]) -> list[str]:
    """Return the first of the shortest cycles through `start`, a node of the strongly connected `members`."""
    parents = {start: start}
    queue = [start]
    # The list grows while it is walked: breadth first, so the first way back is a shortest one.
    for node in queue:
        for peer in graph[node]:
            if peer == start and node != start:
                return _path(parents, start, node)
            if peer in members and peer not in parents:
                parents[peer] = node
                queue.append(peer)
    raise ValueError(f"{start} is on no cycle")


def _path(parents: Mapping[str, str], start: str, end: str) -> list[str]:
    path = [end]
    while path[-1] != start:
        path.append(parents[path[-1]])
    return path[::-1]


def _components(graph: Graph) -> Iterator[list[str]]:
    """Yield the strongly connected components, by two walks (Kosaraju, Sharir 1981)."""
    order: list[str] = []
    visited: set[str] = set()
    for root in graph:
        _visit(graph, root, visited, order)
    backwards: dict[str, list[str]] = {node: [] for node in graph}
    for node, peers in graph.items():
        for peer in peers:
            backwards[peer].append(node)
    visited = set()
    for root in reversed(order):
        component: list[str] = []
        _visit(backwards, root, visited, component)
        if component:
            yield component


def _visit(graph: Graph, root: str, visited: set[str], order: list[str]) -> None:
    """Append what is reached from `root` and not yet visited, each node after those behind it.

    With a stack of its own: a chain of agents is longer than Python's recursion goes.
    """
    if root in visited:
        return
    visited.add(root)
    walk = [(root, iter(graph[root]))]
    while walk:
        node, peers = walk[-1]
        for peer in peers:
            if peer not in visited:
                visited.add(peer)
                walk.append((peer, iter(graph[peer])))
                break
        else:
            walk.pop()
            order.append(node)

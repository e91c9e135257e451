"""The layout of the dependency graph: layers from left to right, callers left. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pallas_registry.status_page.overview import Node

WIDTH = 192
HEIGHT = 46
_GAP_X = 72
_GAP_Y = 18
_MARGIN = 12
MOST = 60
"""Most boxes that are drawn; a bigger fleet shows those that are in trouble and what they touch."""
_SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Box:
    """A node and its upper left corner."""

    node: Node
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Line:
    """An SVG path from a caller to what it depends on; `hot` on the way to a root cause."""

    path: str
    hot: bool


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Boxes and lines with the size of the whole in SVG units; `omitted` counts the nodes that are not drawn."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    omitted: int


def draw(nodes: Sequence[Node], edges: Sequence[tuple[str, str]]) -> GraphLayout:
    """Lay out the graph; it has no cycles (contract.graph)."""
    selected, edges = _selection(nodes, edges)
    layers = _ordered(_layers(selected, edges), edges)
    tallest = max((len(layer) for layer in layers), default=0)
    boxes: dict[str, Box] = {}
    by_name = {node.name: node for node in selected}
    for column, layer in enumerate(layers):
        # each layer is centred on the tallest one
        top = _MARGIN + (tallest - len(layer)) * (HEIGHT + _GAP_Y) // 2
        for row, name in enumerate(layer):
            x = _MARGIN + column * (WIDTH + _GAP_X)
            y = top + row * (HEIGHT + _GAP_Y)
            boxes[name] = Box(by_name[name], x, y)
    lines = tuple(Line(_curve(boxes[a], boxes[b]), _unwell(by_name[a]) and _unwell(by_name[b])) for a, b in edges)
    width = 2 * _MARGIN + len(layers) * (WIDTH + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + tallest * (HEIGHT + _GAP_Y) - _GAP_Y
    return GraphLayout(
        boxes=tuple(boxes.values()),
        lines=lines,
        width=max(width, 0),
        height=max(height, 0),
        omitted=len(nodes) - len(selected),
    )


def _unwell(node: Node) -> bool:
    return node.state in ("error", "degraded", "unauthenticated", "suspect")


def _selection(nodes: Sequence[Node], edges: Sequence[tuple[str, str]]) -> tuple[list[Node], list[tuple[str, str]]]:
    if len(nodes) <= MOST:
        return list(nodes), list(edges)
    unwell = {node.name for node in nodes if _unwell(node)}
    # the neighbours of trouble show where it comes from and whom it hits
    touched = unwell | {name for edge in edges if unwell & set(edge) for name in edge}
    ranked = sorted((node for node in nodes if node.name in touched), key=lambda node: not _unwell(node))[:MOST]
    names = {node.name for node in ranked}
    return ranked, [(a, b) for a, b in edges if a in names and b in names]


def _layers(nodes: Sequence[Node], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the nodes by column: the longest path to a node from one that nobody calls."""
    column = {node.name: 0 for node in nodes}
    # as often as there are nodes at most: without a cycle no path is longer
    for _ in nodes:
        moved = False
        for caller, called in edges:
            if column[called] <= column[caller]:
                column[called] = column[caller] + 1
                moved = True
        if not moved:
            break
    layers: list[list[str]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for name, at in column.items():
        layers[at].append(name)
    return layers


def _ordered(layers: list[list[str]], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return layers with fewer crossings: nodes near the middle of their neighbours one layer before, then after."""
    callers: dict[str, list[str]] = {}
    called: dict[str, list[str]] = {}
    for a, b in edges:
        callers.setdefault(b, []).append(a)
        called.setdefault(a, []).append(b)
    for sweep in range(_SWEEPS):
        # down and up in turn, as Sugiyama's method does it: one direction alone undoes the other
        neighbours = callers if sweep % 2 == 0 else called
        position = {name: row / max(len(layer) - 1, 1) for layer in layers for row, name in enumerate(layer)}
        layers = [sorted(layer, key=lambda name: _middle(name, neighbours, position)) for layer in layers]
    return layers


def _middle(name: str, neighbours: Mapping[str, Sequence[str]], position: Mapping[str, float]) -> float:
    rows = [position[other] for other in neighbours.get(name, ())]
    return sum(rows) / len(rows) if rows else position[name]


def _curve(start: Box, end: Box) -> str:
    x1 = start.x + WIDTH
    y1 = start.y + HEIGHT // 2
    x2 = end.x
    y2 = end.y + HEIGHT // 2
    # control points half way: the curve leaves and arrives level
    bend = (x2 - x1) // 2
    return f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"

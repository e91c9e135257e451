"""The layout of the dependency graph: levels from left to right, callers left, well ones of a big level in one box.

Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pallas_registry.status_page.graph import Edges, Node, NodeState

WIDTH = 192
HEIGHT = 46
_GAP_X = 72
_GAP_Y = 18
_MARGIN = 12
TOP = 30
"""Room for the names of the levels."""
MOST = 60
"""Most boxes that are drawn, near enough: those that are in trouble one by one, the others of their level in a box."""
TALLEST = 10
"""Most boxes of a level."""
DEEPEST = 12
"""Levels that are drawn apart; what is further from its callers stands in the last."""
MOST_LINES = 240
_SWEEPS = 4
_WORST_FIRST: tuple[NodeState, ...] = (
    *("error", "suspect", "degraded", "unauthenticated"),
    *("starting", "unknown", "service", "ok"),
)


@dataclass(frozen=True, slots=True)
class Box:
    """A node and its upper left corner; `members` are those of a group."""

    node: Node
    x: int
    y: int
    members: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """An SVG path from a caller to what it depends on; `hot` on the way to a root cause."""

    path: str
    hot: bool


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Boxes and lines with the size of the whole in SVG units; `grouped` counts the nodes without a box of their own.

    `levels` has the left edge of each level. `lines_omitted` counts the lines beyond `MOST_LINES`.
    """

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    levels: tuple[int, ...]
    grouped: int
    lines_omitted: int


def draw(nodes: Sequence[Node], edges: Edges, *, focus: str = "", steps: int = 1) -> GraphLayout:
    """Lay out the graph; with a `focus` only what it depends on and who depends on it, up to `steps` away."""
    if any(node.name == focus for node in nodes):
        names = _around(focus, edges, steps)
        nodes = [node for node in nodes if node.name in names]
        edges = tuple((a, b) for a, b in edges if a in names and b in names)
    level = levels(nodes, edges)
    columns: list[list[Node]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for node in nodes:
        columns[level[node.name]].append(node)
    room = min(TALLEST, max(3, MOST // max(len(columns), 1)))
    fitted = [_fitted(column, entries, room=room, focus=focus) for column, entries in enumerate(columns)]
    boxed = {name: box for entry in fitted for name, box in entry.boxed.items()}
    # only between levels: a box stands for some that depend on each other where there are more than are drawn
    between = tuple(dict.fromkeys((boxed[a], boxed[b]) for a, b in edges if level[a] != level[b]))
    boxes = _placed(_ordered([[node.name for node in entry.nodes] for entry in fitted], between), fitted)
    return _whole(
        boxes, between, columns=len(columns), grouped=len(nodes) - sum(box.members == 1 for box in boxes.values())
    )


def levels(nodes: Iterable[Node], edges: Edges) -> dict[str, int]:
    """Return the level of each node by name: the longest way to it from one that nobody calls, `DEEPEST` - 1 at most.

    What is outside of the fleet and has no line to it stands in the last level. A circle of soft edges is cut where the
    order of the file comes to it first.
    """
    outside = {node.name for node in nodes if node.kind in ("server", "model")}
    called: dict[str, list[str]] = {node.name: [] for node in nodes}
    callers = dict.fromkeys(called, 0)
    for a, b in edges:
        called[a].append(b)
        callers[b] += 1
    level = dict.fromkeys(called, 0)
    loose = [name for name in outside if not callers[name]]
    left = dict.fromkeys(called)
    ready = deque(name for name in called if not callers[name])
    while left:
        name = ready.popleft() if ready else next(iter(left))
        if name not in left:
            continue
        del left[name]
        for other in called[name]:
            callers[other] -= 1
            if other in left:
                level[other] = max(level[other], min(level[name] + 1, DEEPEST - 1))
                if not callers[other]:
                    ready.append(other)
    last = max(level.values(), default=0)
    return level | dict.fromkeys(loose, last)


def _around(focus: str, edges: Edges, steps: int) -> set[str]:
    """Return the names at most `steps` away from `focus`, along the edges or against them, but never both."""
    names = {focus}
    for forward in (True, False):
        reached = {focus}
        for _ in range(steps):
            reached |= {(b if forward else a) for a, b in edges if (a if forward else b) in reached}
        names |= reached
    return names


def _unwell(node: Node) -> bool:
    return node.state in ("error", "degraded", "unauthenticated", "suspect")


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The boxes of one level: which node is in which box, and how many are in a box that stands for several."""

    nodes: Sequence[Node]
    boxed: Mapping[str, str]
    members: Mapping[str, int]


def _fitted(column: int, nodes: Sequence[Node], *, room: int, focus: str) -> _Fitted:
    """Return `room` boxes at most: the one that is looked at and the trouble one by one, and two for all others."""
    if len(nodes) <= room:
        return _Fitted(nodes, {node.name: node.name for node in nodes}, {})
    ranked = sorted(nodes, key=lambda node: (node.name != focus, not node.root, not _unwell(node)))
    boxes = [node for node in ranked if _unwell(node) or node.name == focus][: room - 2]
    boxed = {node.name: node.name for node in boxes}
    members: dict[str, int] = {}
    others = [node for node in nodes if node.name not in boxed]
    for unwell in (True, False):
        group = [node for node in others if _unwell(node) is unwell]
        if not group:
            continue
        # no agent or service has such a name
        box = group[0] if len(group) == 1 else Node(f"/{column}/{unwell}", _title(group), _worst(group), kind="group")
        boxes.append(box)
        boxed |= dict.fromkeys((node.name for node in group), box.name)
        members[box.name] = len(group)
    return _Fitted(boxes, boxed, members)


def _title(nodes: Sequence[Node]) -> str:
    word = "agents" if all(node.kind == "agent" for node in nodes) else "members"
    return f"{len(nodes)} {word}"


def _worst(nodes: Sequence[Node]) -> NodeState:
    return min((node.state for node in nodes), key=_WORST_FIRST.index)


def _placed(layers: Sequence[Sequence[str]], fitted: Sequence[_Fitted]) -> dict[str, Box]:
    tallest = max((len(layer) for layer in layers), default=0)
    boxes: dict[str, Box] = {}
    for column, (layer, level) in enumerate(zip(layers, fitted, strict=True)):
        nodes = {node.name: node for node in level.nodes}
        # each layer is centred on the tallest one
        top = TOP + (tallest - len(layer)) * (HEIGHT + _GAP_Y) // 2
        for row, name in enumerate(layer):
            x = _MARGIN + column * (WIDTH + _GAP_X)
            boxes[name] = Box(nodes[name], x, top + row * (HEIGHT + _GAP_Y), level.members.get(name, 1))
    return boxes


def _whole(boxes: Mapping[str, Box], edges: Edges, *, columns: int, grouped: int) -> GraphLayout:
    lines = [Line(_curve(boxes[a], boxes[b]), _unwell(boxes[a].node) and _unwell(boxes[b].node)) for a, b in edges]
    lines.sort(key=lambda line: not line.hot)
    lowest = max((box.y for box in boxes.values()), default=0)
    return GraphLayout(
        boxes=tuple(boxes.values()),
        # the hot ones last, on top of the others
        lines=tuple(reversed(lines[:MOST_LINES])),
        width=2 * _MARGIN + columns * (WIDTH + _GAP_X) - _GAP_X if boxes else 0,
        height=lowest + HEIGHT + _MARGIN if boxes else 0,
        levels=tuple(_MARGIN + column * (WIDTH + _GAP_X) for column in range(columns)),
        grouped=grouped,
        lines_omitted=max(0, len(lines) - MOST_LINES),
    )


def _ordered(layers: list[list[str]], edges: Edges) -> list[list[str]]:
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

"""The graph as a picture by itself: no font, script or style from elsewhere, light or dark as the reader has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from pallas_gen.graph.layers import Slot, layers
from pallas_gen.graph.members import Graph

_LETTER = 8
"""Units of a letter at 13 in any common monospaced font, and a little."""
_PADDING = 14
_HEIGHT = 34
_HEIGHT_WITH_STATE = 48
_PASSING = 12
"""Height that a call takes in a column which it passes."""
_GAP_X = 56
_GAP_Y = 16
_MARGIN = 16
_STYLE = """
text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1c1c1f}
.state{font-size:11px}
.paper{fill:#fff}
.box{fill:#f4f4f5;stroke:#71717a}
.ok .box{fill:#d7f0dd;stroke:#2b7a46}
.degraded .box{fill:#fbe8b6;stroke:#8a6100}
.error .box{fill:#f8d0cc;stroke:#b3261e;stroke-width:2}
.unauthenticated .box{fill:#dfe3f7;stroke:#4a56a8}
.call{fill:none;stroke:#71717a;stroke-width:1.4}
.soft{stroke-dasharray:5 4}
.head{fill:#71717a}
@media(prefers-color-scheme:dark){
.paper{fill:#18181b}
text{fill:#f4f4f5}
.box{fill:#2b2b30;stroke:#a1a1aa}
.ok .box{fill:#173d25;stroke:#5cc384}
.degraded .box{fill:#463610;stroke:#e0b341}
.error .box{fill:#57201c;stroke:#ff8f85}
.unauthenticated .box{fill:#272c52;stroke:#98a4f0}
.call{stroke:#a1a1aa}
.head{fill:#a1a1aa}
}
"""
_STATES = frozenset({"ok", "degraded", "error", "unauthenticated"})
"""Those with a colour; any other state is a word."""

Point = tuple[int, int]


def svg(graph: Graph) -> str:
    """Return an SVG document: callers to the left; a dashed line is a call that its caller does not wait for."""
    placed = layers(list(graph.kinds), graph.edges)
    height = _HEIGHT_WITH_STATE if graph.health else _HEIGHT
    widths = [_width(graph, column) for column in placed.columns]
    lefts = [_MARGIN + sum(widths[:number]) + number * _GAP_X for number in range(len(widths))]
    rows = _rows(placed.columns, height)
    column_of = {slot: number for number, column in enumerate(placed.columns) for slot in column}

    def middle(slot: Slot) -> int:
        return rows[slot] + (height if isinstance(slot, str) else _PASSING) // 2

    parts = []
    for call, hard in graph.edges.items():
        points = [(lefts[column_of[slot]], middle(slot), widths[column_of[slot]]) for slot in placed.ways.get(call, ())]
        if points:
            parts.append(_call(call, points, hard=hard))
    for member in graph.kinds:
        number = column_of[member]
        parts.append(_box(graph, member, (lefts[number], rows[member]), (widths[number], height)))
    right = (lefts[-1] + widths[-1] if lefts else 0) + _MARGIN
    bottom = max((rows[slot] + height for slot in rows), default=0) + _MARGIN
    return _document(graph, "\n".join(parts), right, bottom)


def _document(graph: Graph, drawn: str, width: int, height: int) -> str:
    name = _text(graph.name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label={quoteattr(f"Who calls whom in {_plain(graph.name)}")}>\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0,0L8,4L0,8z"/></marker></defs>\n'
        f'<rect class="paper" width="{width}" height="{height}"/>\n{drawn}\n</svg>\n'
    )


def _width(graph: Graph, column: Sequence[Slot]) -> int:
    words = [word for slot in column if isinstance(slot, str) for word in (slot, _line(graph, slot))]
    return max((len(word) for word in words), default=0) * _LETTER + 2 * _PADDING


def _rows(columns: Sequence[Sequence[Slot]], height: int) -> Mapping[Slot, int]:
    """Return the upper edge of each slot; columns are centred on the tallest one."""
    sizes = [[height if isinstance(slot, str) else _PASSING for slot in column] for column in columns]
    totals = [sum(column) + _GAP_Y * (len(column) - 1) for column in sizes]
    rows: dict[Slot, int] = {}
    for column, size, total in zip(columns, sizes, totals, strict=True):
        top = _MARGIN + (max(totals) - total) // 2
        for number, slot in enumerate(column):
            rows[slot] = top + sum(size[:number]) + _GAP_Y * number
    return rows


def _call(call: tuple[str, str], points: Sequence[tuple[int, int, int]], *, hard: bool) -> str:
    """Return a call through columns, by left edge, middle and width of each; in a circle it leads to the left."""
    return (
        f'<path class="call{"" if hard else " soft"}" marker-end="url(#head)" d="{"".join(_steps(points))}">'
        f"<title>{_text(call[0])} calls {_text(call[1])}{'' if hard else ', not required'}</title></path>"
    )


def _steps(points: Sequence[tuple[int, int, int]]) -> Iterator[str]:
    to_right = points[-1][0] > points[0][0]
    left, y, width = points[0]
    x = left + width if to_right else left
    yield f"M{x},{y}"
    for number, (next_left, next_y, next_width) in enumerate(points[1:], 1):
        entrance, leaving = (next_left, next_left + next_width)[:: 1 if to_right else -1]
        bend = (entrance - x) // 2
        yield f"C{x + bend},{y} {entrance - bend},{next_y} {entrance},{next_y}"
        if number < len(points) - 1:
            yield f"H{leaving}"
        x, y = leaving, next_y


def _box(graph: Graph, member: str, corner: Point, size: Point) -> str:
    (x, y), (width, height) = corner, size
    state = graph.state(member)
    corners = {"agent": 4, "service": height // 2, "gateway": 12}[graph.kinds[member]]
    classes = f"member {state}" if state in _STATES else "member"
    center = x + width // 2
    line = _line(graph, member)
    name = f'<text x="{center}" y="{y + (20 if line else height // 2 + 5)}" text-anchor="middle">{_text(member)}</text>'
    below = f'<text class="state" x="{center}" y="{y + 37}" text-anchor="middle">{_text(line)}</text>' if line else ""
    message = graph.health[member].message if member in graph.health else ""
    title = f"{graph.kinds[member]} {member}{f': {state}' if state else ''}{f', {message}' if message else ''}"
    return (
        f'<g class="{classes}"><title>{_text(title)}</title>'
        f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="{corners}"/>{name}{below}</g>'
    )


def _line(graph: Graph, member: str) -> str:
    """Return the second line of a box: its state as a word, since nobody should need the colour."""
    return graph.state(member)[:20]


def _text(text: str) -> str:
    return escape(_plain(text))


def _plain(text: str) -> str:
    """Return text without what XML cannot have: a message comes from whoever answers at a URL."""
    return "".join(letter if letter.isprintable() else " " for letter in text)

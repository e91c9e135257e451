"""The part of the fleet that a reader asked for by the query of the page: searched, filtered, sorted, grouped. Pure.

Everything works without JavaScript: each choice is a link or a field of a form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from pallas_registry.state.status import WORST_FIRST
from pallas_registry.status_page.overview import Row

ROWS = 25
"""Agents in the table at once; the map above it has all of them, up to `TILES`."""
TILES = 400
MOST_TEXT = 100
"""Characters of a search, and of a name to look at."""
_FIELDS = 20
"""Fields of a query that are read."""
STATES = ("trouble", *WORST_FIRST)
"""Values of `state`: all that are not well, and each state."""
GROUPS = ("state", "level", "cause")
SORTS = ("worst", "name", "uptime", "latency")
STEPS = (1, 2, 3)
ZOOMS = (50, 75, 100, 150, 200)


@dataclass(frozen=True, slots=True)
class Selection:
    """The choices of a reader; a value that makes no sense is as good as none.

    `focus` names the agent, service, server or model that the page is about, `steps` how far around it the drawing
    goes, `zoom` the size of the drawing in per cent.
    """

    q: str = ""
    state: str = ""
    group: str = ""
    sort: str = "worst"
    page: int = 1
    focus: str = ""
    steps: int = 1
    zoom: int = 100

    @property
    def narrowed(self) -> bool:
        """Whether some agents are left out by choice."""
        return bool(self.q or self.state)

    def link(self, **changes: Any) -> str:
        """Return the address of the page with these choices changed; those that are as without a query are left out."""
        # another choice of agents begins on their first page
        first = {"page": 1} if changes.keys() & {"q", "state", "group", "sort"} else {}
        changed = replace(self, **(first | changes))
        query = {
            field.name: getattr(changed, field.name)
            for field in fields(changed)
            if getattr(changed, field.name) != field.default
        }
        return f"?{urlencode(query)}" if query else "./"


def parse(query: bytes) -> Selection:
    """Return the selection of a query string, whatever it has in it."""
    try:
        pairs = parse_qsl(query.decode("latin-1"), max_num_fields=_FIELDS, errors="replace")
    except ValueError:
        return Selection()
    values = {key: value.strip()[:MOST_TEXT] for key, value in pairs}
    return Selection(
        q=_clean(values.get("q", "")),
        state=_one_of(values.get("state", ""), STATES, ""),
        group=_one_of(values.get("group", ""), GROUPS, ""),
        sort=_one_of(values.get("sort", ""), SORTS, SORTS[0]),
        page=max(1, _number(values.get("page", ""), range(1, 100_000), 1)),
        focus=_clean(values.get("focus", "")),
        steps=_number(values.get("steps", ""), STEPS, 1),
        zoom=_number(values.get("zoom", ""), ZOOMS, 100),
    )


def _clean(text: str) -> str:
    """Return the text without characters that neither a name nor HTML can have."""
    return "".join(character for character in text if character.isprintable())


def _one_of(text: str, values: Sequence[str], otherwise: str) -> str:
    return text if text in values else otherwise


def _number(text: str, values: Sequence[int], otherwise: int) -> int:
    # int() takes digits of every script
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else otherwise
    return number if number in values else otherwise


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under one heading; the only one has no title."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows that fit: in groups for the map, and one page of them in groups for the table."""

    total: int
    tiles: tuple[Group, ...]
    table: tuple[Group, ...]
    page: int
    pages: int

    @property
    def mapped(self) -> int:
        """Agents on the map."""
        return sum(len(group.rows) for group in self.tiles)


def select(rows: Sequence[Row], selection: Selection) -> Selected:
    """Return the selected rows of `rows`, which come with the worst first."""
    fitting = sorted((row for row in rows if _fits(row, selection)), key=_ORDERS[selection.sort])
    key = _KEYS.get(selection.group)
    if key is not None:
        # groups stay whole: a page of the table goes on where the one before ended
        fitting.sort(key=lambda row: key(row)[0])
    pages = max(1, -(-len(fitting) // ROWS))
    page = min(selection.page, pages)
    return Selected(
        total=len(fitting),
        tiles=_grouped(fitting[:TILES], key),
        table=_grouped(fitting[(page - 1) * ROWS : page * ROWS], key),
        page=page,
        pages=pages,
    )


def _fits(row: Row, selection: Selection) -> bool:
    if selection.state == "trouble" and row.state == "ok":
        return False
    if selection.state not in ("", "trouble", row.state):
        return False
    return not selection.q or selection.q.casefold() in _text(row)


def _text(row: Row) -> str:
    # a line break is in no query: a search cannot match across two fields
    parts = (row.agent, row.title, row.description, row.reason.message, row.url or "", *(row.tools or ()))
    return "\n".join(parts).casefold()


_Key = Callable[[Row], tuple[Any, str]]
"""Of a row: what its group is sorted by, and the title of the group."""


def _cause(row: Row) -> tuple[Any, str]:
    if not row.roots:
        return ((1, ""), "No trouble")
    first = row.roots[0]
    return ((0, first.agent), f"{first.agent}: {first.reason.message}")


_KEYS: dict[str, _Key] = {
    "state": lambda row: (WORST_FIRST.index(row.state), row.state),
    "level": lambda row: (row.level, f"Level {row.level}"),
    "cause": _cause,
}
_ORDERS: dict[str, Callable[[Row], Any]] = {
    "worst": lambda row: WORST_FIRST.index(row.state),
    "name": lambda row: row.agent,
    "uptime": lambda row: 2.0 if row.uptime.day.share is None else row.uptime.day.share,
    "latency": lambda row: -(row.latency or 0.0),
}


def _grouped(rows: Sequence[Row], key: _Key | None) -> tuple[Group, ...]:
    if key is None:
        return (Group("", tuple(rows)),) if rows else ()
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row)[1], []).append(row)
    return tuple(Group(title, tuple(members)) for title, members in groups.items())

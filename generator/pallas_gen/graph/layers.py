"""A graph -> places of its members in columns, callers to the left, by the method of Sugiyama, Tagawa and Toda (1981).

Circles are cut, each member stands one column after the last of its callers, calls over several columns get a place in
each of those between, and each column is sorted by the middle of its neighbours. The same graph gives the same places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[str, str]
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Between:
    """The place of a call in a column that it passes."""

    call: Edge
    column: int


Slot = str | Between


@dataclass(frozen=True, slots=True)
class Layers:
    """Columns from left to right, each from top to bottom; `ways` has what each call passes, from caller to called."""

    columns: tuple[tuple[Slot, ...], ...]
    ways: Mapping[Edge, tuple[Slot, ...]]


def layers(members: Sequence[str], edges: Iterable[Edge]) -> Layers:
    """Return where members and calls stand; a call against the columns, in a circle, has its way backwards."""
    calls = [edge for edge in edges if edge[0] != edge[1]]
    backwards = _against(members, calls)
    forward = {call: call[::-1] if call in backwards else call for call in calls}
    column = _columns(members, forward.values())
    slots: list[list[Slot]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for member in members:
        slots[column[member]].append(member)
    ways: dict[Edge, tuple[Slot, ...]] = {}
    for call, (start, end) in forward.items():
        passed = [Between(call, number) for number in range(column[start] + 1, column[end])]
        for slot in passed:
            slots[slot.column].append(slot)
        ways[call] = (start, *passed, end)
    ordered = _ordered(slots, ways.values())
    turned = {call: way[::-1] if call in backwards else way for call, way in ways.items()}
    return Layers(tuple(tuple(entry) for entry in ordered), turned)


def _against(members: Sequence[str], calls: Sequence[Edge]) -> set[Edge]:
    """Return the calls that close a circle, seen from those that nobody calls, and then in the order of `members`."""
    called: dict[str, list[str]] = {member: [] for member in members}
    for start, end in calls:
        called[start].append(end)
    with_callers = {end for _, end in calls}
    open_, done = set[str](), set[str]()
    against = set[Edge]()
    for root in sorted(members, key=lambda member: member in with_callers):
        if root in done:
            continue
        path = [(root, iter(called[root]))]
        open_.add(root)
        while path:
            member, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                open_.discard(member)
                done.add(member)
            elif following in open_:
                against.add((member, following))
            elif following not in done:
                open_.add(following)
                path.append((following, iter(called[following])))
    return against


def _columns(members: Sequence[str], calls: Iterable[Edge]) -> dict[str, int]:
    """Return the number of each member's column: the longest way to it. `calls` have no circle."""
    callers: dict[str, int] = dict.fromkeys(members, 0)
    called: dict[str, list[str]] = {member: [] for member in members}
    for start, end in dict.fromkeys(calls):
        callers[end] += 1
        called[start].append(end)
    column = dict.fromkeys(members, 0)
    ready = [member for member in members if not callers[member]]
    for member in ready:
        for end in called[member]:
            column[end] = max(column[end], column[member] + 1)
            callers[end] -= 1
            if not callers[end]:
                ready.append(end)
    return column


def _ordered(columns: list[list[Slot]], ways: Iterable[Sequence[Slot]]) -> list[list[Slot]]:
    """Return columns with fewer crossings: by the neighbours before them and by those after, in turn."""
    before: dict[Slot, list[Slot]] = {}
    after: dict[Slot, list[Slot]] = {}
    for way in ways:
        for start, end in pairwise(way):
            before.setdefault(end, []).append(start)
            after.setdefault(start, []).append(end)
    for sweep in range(_SWEEPS):
        neighbours = before if sweep % 2 == 0 else after
        numbers = range(len(columns)) if sweep % 2 == 0 else reversed(range(len(columns)))
        position = {slot: row / max(len(entry) - 1, 1) for entry in columns for row, slot in enumerate(entry)}
        for number in numbers:
            columns[number].sort(key=lambda slot: _middle(slot, neighbours, position))
            position |= {slot: row / max(len(columns[number]) - 1, 1) for row, slot in enumerate(columns[number])}
    return columns


def _middle(slot: Slot, neighbours: Mapping[Slot, Sequence[Slot]], position: Mapping[Slot, float]) -> float:
    rows = [position[other] for other in neighbours.get(slot, ())]
    return sum(rows) / len(rows) if rows else position[slot]

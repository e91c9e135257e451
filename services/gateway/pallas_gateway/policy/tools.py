"""Names of tools as agents.yaml writes them: `*` stands for any characters."""

from __future__ import annotations

from collections.abc import Collection

ALL = "*"


class Tools:
    """Names of tools, and patterns; the time to try a name grows with its length alone, since it comes from outside."""

    def __init__(self, written: Collection[str]) -> None:
        self._names = frozenset(name for name in written if ALL not in name)
        self._patterns = [name.split(ALL) for name in written if ALL in name]

    @property
    def are_all(self) -> bool:
        """Return whether `*` is among them, which is about more than tools."""
        return ["", ""] in self._patterns

    def __contains__(self, tool: str) -> bool:
        return tool in self._names or any(_matches(pieces, tool) for pieces in self._patterns)


def _matches(pieces: list[str], tool: str) -> bool:
    """Return whether the pieces of a pattern stand in `tool` one after the other, the outer ones at its ends."""
    first, *middle, last = pieces
    end = len(tool) - len(last)
    if end < len(first) or not (tool.startswith(first) and tool.endswith(last)):
        return False
    start = len(first)
    for piece in middle:
        start = tool.find(piece, start, end)
        if start < 0:
            return False
        start += len(piece)
    return True

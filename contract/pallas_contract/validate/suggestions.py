"""Hints for names that do not exist: the nearest one, or those there are."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

LONGEST_NAME = 100
"""Characters. Comparing two names takes time that grows with the product of their lengths."""
MAX_COMPARISONS = 20_000
"""Of one file, half a second: a file of nothing but wrong names is refused as quickly as one with a single slip."""
MAX_LISTED = 30
"""Names in one hint."""


class Suggestions:
    """Hints from the names that exist, with a bound on the work for one file."""

    def __init__(self) -> None:
        self._comparisons = 0

    def hint(self, name: str, names: Sequence[str], introduction: str = "there are") -> str:
        """Return the nearest of `names` as a question; the first of them, in their order, when none is near."""
        nearest = self._nearest(name, names)
        if nearest:
            return f"did you mean `{nearest}`?"
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        return f"{introduction}: {', '.join(names[:MAX_LISTED])}{more}"

    def _nearest(self, name: str, names: Sequence[str]) -> str:
        if len(name) > LONGEST_NAME or self._comparisons >= MAX_COMPARISONS:
            return ""
        self._comparisons += len(names)
        return next(iter(difflib.get_close_matches(name, names, n=1)), "")


def suggested(hint: str) -> str:
    """Return the name that a hint of `Suggestions` asks about; empty where it lists those there are."""
    start, end = "did you mean `", "`?"
    return hint[len(start) : -len(end)] if hint.startswith(start) and hint.endswith(end) else ""

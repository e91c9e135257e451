"""The rows of docs/seeds.md: a demand of a seed each, with what shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.documentation.blocks import ROOT

PAGE = ROOT / "docs" / "seeds.md"
_SEED = re.compile(r"## Seed (\d{3}): .+")
_ROW = re.compile(r"\| (?P<demand>.+?) \| (?P<cell>[^|]+) \|")
_LINK = re.compile(r"\[(?P<text>[^]]+)\]\((?P<target>[^)]+)\)")
_NOT_YET = re.compile(r"not yet: issue \d+(, .+)?")

Kind = Literal["shown", "otherwise", "not yet"]
KINDS: tuple[Kind, ...] = ("shown", "otherwise", "not yet")


@dataclass(frozen=True)
class Row:
    """One demand; `tests` are pairs of function and file, `decisions` are links, both relative to docs/."""

    seed: str
    demand: str
    cell: str
    tests: tuple[tuple[str, str], ...]
    decisions: tuple[str, ...]

    @property
    def kind(self) -> Kind | None:
        """The column in which it counts; None where the cell is of no known form."""
        if self.cell.startswith("not yet"):
            return "not yet" if _NOT_YET.fullmatch(self.cell) else None
        if self.cell.startswith("otherwise: "):
            return "otherwise" if self.decisions else None
        return "shown" if self.tests and not self.decisions else None

    def __str__(self) -> str:
        return f"{self.seed}: {self.demand}"


def rows(text: str) -> Iterator[Row]:
    """Yield the rows of the page in its order."""
    seed = ""
    for line in text.splitlines():
        if head := _SEED.fullmatch(line):
            seed = head[1]
        elif seed and line.startswith("| ") and line != "| demand | shown by |":
            match = _ROW.fullmatch(line)
            assert match, f"no row of two cells: {line}"
            links = _LINK.findall(match["cell"])
            tests = tuple((name.strip("`"), target) for name, target in links if target.endswith(".py"))
            decisions = tuple(target for _, target in links if not target.endswith(".py"))
            yield Row(seed, match["demand"], match["cell"], tests, decisions)


def counted(text: str) -> dict[str, list[int]]:
    """Return the table at the head of the page: demands, and those of each kind, by seed and for `all`."""
    table = re.findall(r"^\| (?:\[(\d{3})\]\(#[^)]+\)|(all)) \|((?: \d+ \|){4})$", text, re.MULTILINE)
    return {seed or total: [int(number) for number in re.findall(r"\d+", numbers)] for seed, total, numbers in table}

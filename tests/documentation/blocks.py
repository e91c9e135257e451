"""The fenced blocks of the pages for users, each with the scenario that its marker names.

A marker is the comment on the line before the fence, which no reader sees: `<!-- test: SCENARIO -->`, or with a file
that the block is written to, `<!-- test: first-agent agents/clerk.md -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md")]
)
_BLOCK = re.compile(
    r"^(?:<!-- test: (?P<marker>[^\n]*?) -->\n)?(?P<fence>```+)(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, its language, and what its marker says."""

    page: str
    line: int
    """Of the fence, counted from 1."""
    language: str
    text: str
    scenario: str
    file: str
    """Where the scenario puts it; empty for commands."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read(page: Path) -> Iterator[Block]:
    """Yield the blocks of one page, in its order; without a marker the scenario is empty."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        scenario, _, file = (match["marker"] or "").partition(" ")
        line = text.count("\n", 0, match.start("fence")) + 1
        yield Block(str(page.relative_to(ROOT)), line, match["language"], match["text"], scenario, file)


BLOCKS = tuple(block for page in PAGES for block in read(page))


def of(scenario: str) -> list[Block]:
    """Return the blocks of a scenario, by page and in the order of the page."""
    return [block for block in BLOCKS if block.scenario == scenario]


def files(scenario: str) -> dict[str, str]:
    """Return the text of each file that a scenario has."""
    return {block.file: block.text for block in of(scenario) if block.file}

"""No paragraph of the pages is longer than a reader has breath for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.blocks import PAGES, ROOT

WORDS = 120
_BLOCK = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"\n(?=\s*(?:[-*]|\d+\.)\s)")


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and items of lists of a page, without blocks, tables and headings."""
    for block in re.split(r"\n\s*\n", _BLOCK.sub("", text)):
        if not block.strip().startswith(("|", "#", "<!--")):
            yield from _ITEM.split(block.strip())


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_paragraph_has_no_more_than_120_words(page: Path) -> None:
    text = page.read_text()
    assert [part for part in paragraphs(text) if len(part.split()) > WORDS] == []


def test_a_long_one_is_seen_and_its_neighbours_are_not_counted_with_it() -> None:
    long = "word " * (WORDS + 1)
    text = f"# Title\n\nshort\n\n```sh\n{long}\n```\n\n| {long} |\n\n- {'word ' * 90}\n- {long}\n"
    assert [len(part.split()) > WORDS for part in paragraphs(text)].count(True) == 1

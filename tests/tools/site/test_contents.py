"""tools/site/contents.py: each page for users stands in it, once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tools.site.contents import MADE, SECTIONS
from tools.site.sources import HOME, pages

ROOT = Path(__file__).parents[3]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("examples/*/README.md"),
    *ROOT.glob("benchmarks/*.md"),
    *ROOT.glob("deploy/helm/*/README.md"),
]


def test_every_page_is_there_once() -> None:
    known = {str(page.relative_to(ROOT)) for page in PAGES} - {HOME}
    assert Counter(pages(ROOT)) == Counter(known)


def test_every_section_has_a_few() -> None:
    entries = [page for section in SECTIONS.values() for page in section]
    assert set(MADE) <= set(entries)
    assert max(len(section) for section in SECTIONS.values()) <= 10

"""Documents as the memory has them: pages cut into pieces that are short enough to be found and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LONGEST = 800
"""Characters of a piece."""
KNOWLEDGE_BASES = ("general", "codebase", "documents")
"""Scopes of seed 002 (search_knowledge_base)."""
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


@dataclass(frozen=True, slots=True)
class Document:
    """A document that has been read. `pages` are (number, text); the number is None where there are no pages."""

    source: str
    knowledge_base: str
    type: str
    digest: str
    pages: Sequence[tuple[int | None, str]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a page, in the order of the document."""

    page: int | None
    position: int
    content: str


def pieces(document: Document) -> list[Piece]:
    """Return the pieces of a document: whole paragraphs as long as they fit, else sentences, else parts of these."""
    texts = ((page, text) for page, content in document.pages for text in _joined(content))
    return [Piece(page, position, text) for position, (page, text) in enumerate(texts)]


def _joined(text: str) -> Iterator[str]:
    together = ""
    for part in _parts(text):
        if together and len(together) + len(part) + 2 > LONGEST:
            yield together
            together = ""
        together = f"{together}\n\n{part}" if together else part
    if together:
        yield together


def _parts(text: str) -> Iterator[str]:
    for paragraph in filter(None, map(str.strip, _PARAGRAPH.split(text))):
        if len(paragraph) <= LONGEST:
            yield paragraph
            continue
        for sentence in filter(None, map(str.strip, _SENTENCE.split(paragraph))):
            yield from (sentence[start : start + LONGEST] for start in range(0, len(sentence), LONGEST))

"""Hybrid search: pieces that are near in meaning, and pieces that have the words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from percolate.memory.embeddings import Embedder
from percolate.memory.pieces import LONGEST
from percolate.memory.store import Kind, Store
from percolate.memory.words import bm25, stems, tokens
from percolate.problems import EmbeddingFailed

_CANDIDATES = 100
"""Pieces that each of the two ways may bring."""
_NEAR = 0.2
"""Cosine from which on a piece is found without having a word of the query."""
_MEANING = 0.6
"""Share of the score; the rest is that of the words."""

_SHOWN = """
SELECT p.content, p.page, d.type, d.knowledge_base FROM pieces p JOIN documents d USING (tenant, source)
WHERE p.tenant = :tenant AND p.source = :source AND p.position = :position
"""
_Key = tuple[str, int]
"""A piece: its source, and its position in it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A piece that was found; `score` is between 0 and 1."""

    content: str
    score: float
    source: str
    type: str
    page: int | None
    knowledge_base: str


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first. `notice` says why they were found by words only."""

    hits: list[Hit]
    notice: str = ""


def search(
    store: Store, embedder: Embedder, *, tenant: str, query: str, knowledge_base: str | None, limit: int
) -> Found:
    """Return what `tenant` has about `query`, in one knowledge base or in all of them."""
    notice = ""
    vector = b""
    try:
        (vector,) = embedder.embed([query])
    except EmbeddingFailed as error:
        notice = f"{error}: found by words only"
    with store.reading(tenant):
        cosines: dict[_Key, float] = {}
        if vector:
            notice = _mismatch(store, tenant, Kind(embedder.model, len(vector) // 4))
            rows = store.nearest(tenant, embedder.model, vector, knowledge_base=knowledge_base, most=_CANDIDATES)
            # a vector of zeros, of a text without letters or digits, has no direction, and so is near nothing
            cosines = {
                (source, position): cosine
                for source, position, cosine in rows
                if cosine is not None and not math.isnan(cosine)
            }
        scores = _by_words(store, tenant, query, knowledge_base)
        hits = [hit for score, key in _ranked(cosines, scores)[:limit] for hit in _hits(store, tenant, key, score)]
    return Found(hits, notice)


def _ranked(cosines: Mapping[_Key, float], scores: Mapping[_Key, float]) -> list[tuple[float, _Key]]:
    best = max(scores.values(), default=0.0)
    return sorted(
        (
            (_score(cosines.get(key), scores.get(key, 0.0) / best if best > 0 else 0.0, words_alone=not cosines), key)
            for key in cosines.keys() | scores.keys()
            if key in scores or cosines[key] >= _NEAR
        ),
        key=lambda pair: (-pair[0], pair[1]),
    )


def _by_words(store: Store, tenant: str, query: str, knowledge_base: str | None) -> dict[_Key, float]:
    rows = store.with_words(tenant, query, knowledge_base, _CANDIDATES)
    words, *texts = stems([" ".join(tokens(query)), *(content for *_, content in rows)])
    return bm25(words, {(source, position): text for (source, position, _), text in zip(rows, texts, strict=True)})


def _score(cosine: float | None, words: float, *, words_alone: bool) -> float:
    if words_alone:
        return round(words, 4)
    return round(_MEANING * max(0.0, min(1.0, cosine or 0.0)) + (1 - _MEANING) * words, 4)


def _mismatch(store: Store, tenant: str, kind: Kind) -> str:
    others = [str(other) for other in store.kinds(tenant) if other != kind]
    if not others:
        waiting = store.waiting(tenant)
        return (
            f"{waiting} pieces have no vector, and are found by words only, until they are ingested again"
            if waiting
            else ""
        )
    return (
        f"the memory has vectors of {' and '.join(others)}, and the query has one of {kind}: those are found by words "
        "only, until `python -m percolate.ingest --again` has run"
    )


def _hits(store: Store, tenant: str, key: _Key, score: float) -> list[Hit]:
    source, position = key
    return [
        Hit(content[: 2 * LONGEST], score, source, type_, page, knowledge_base)
        for content, page, type_, knowledge_base in store.rows(tenant, _SHOWN, source=source, position=position)
    ]

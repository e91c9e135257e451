"""Words of texts, and how much a text is about some of them: the same whichever database has the text.

SQLite's FTS5 says what a word is, and its stem, for both databases: PostgreSQL cuts and stems in another way.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing

MOST = 32
"""Words of a query."""
_LONGEST = 128
"""Characters of a word; PostgreSQL takes 2,046 bytes."""
_UNICODE = "unicode61 remove_diacritics 2"
_SATURATION = 1.2
_BY_LENGTH = 0.75
"""The constants of BM25 (k1 and b) as FTS5 has them."""


def tokens(query: str) -> list[str]:
    """Return the words of a query as they are written, without accents, each once, and at most `MOST`."""
    (words,) = _cut([query], _UNICODE)
    return list(dict.fromkeys(words))[:MOST]


def stems(texts: Sequence[str]) -> list[list[str]]:
    """Return the stems of the words of each text, in their order."""
    return _cut(texts, f"porter {_UNICODE}")


def bm25[K: Hashable](words: Sequence[str], texts: Mapping[K, Sequence[str]]) -> dict[K, float]:
    """Return how much each of some texts, as stems, is about `words`: more than nothing where it has one of them.

    How rare a word is, is counted in these texts, so that nobody learns from a score what others have.
    """
    counts = {key: Counter(text) for key, text in texts.items()}
    average = sum(map(len, texts.values())) / max(1, len(texts))
    rarity = {word: sum(word in count for count in counts.values()) for word in words}
    weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in rarity.items()}
    scores = {}
    for key, count in counts.items():
        length = 1 - _BY_LENGTH + _BY_LENGTH * count.total() / max(1.0, average)
        scores[key] = sum(
            weights[word] * count[word] * (_SATURATION + 1) / (count[word] + _SATURATION * length) for word in weights
        )
    return scores


def _cut(texts: Sequence[str], tokenizer: str) -> list[list[str]]:
    words: list[list[str]] = [[] for _ in texts]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (content, tokenize='{tokenizer}')")
        connection.execute("CREATE VIRTUAL TABLE instances USING fts5vocab (texts, instance)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO texts (rowid, content) VALUES (?, ?)", enumerate(texts))
        for number, word in connection.execute("SELECT doc, term FROM instances ORDER BY doc, offset"):
            words[number].append(word[:_LONGEST])
    return words

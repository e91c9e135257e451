"""The memory in PostgreSQL with pgvector: for several servers beside one another."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from percolate.memory import words
from percolate.memory.connections import Connections
from percolate.memory.migrations import SETTING
from percolate.memory.pieces import Piece
from percolate.memory.store import Row, Store, Values

_IDLE = 20
"""Seconds after which a transaction ends whose server says nothing, its machine gone or frozen: before who waits for a
tenant gives up. PostgreSQL's own is never."""
_NAME = re.compile(r"(?<!:):([a-z_]+)")
_BEGUN = "SELECT set_config($1, $2, true), set_config('idle_in_transaction_session_timeout', $3, true)"
_WITH_WORDS = """
SELECT p.source, p.position, p.content
FROM pieces p JOIN documents d USING (tenant, source)
WHERE p.words @@ CAST(CAST(:words AS text) AS tsquery) AND p.tenant = :tenant
  AND (CAST(:knowledge_base AS text) IS NULL OR d.knowledge_base = CAST(:knowledge_base AS text))
ORDER BY ts_rank(p.words, CAST(CAST(:words AS text) AS tsquery)) DESC, p.source, p.position LIMIT :most
"""


class PostgresStore(Store):
    """A pool of connections. Each transaction is one tenant's, by a setting that ends with it."""

    NUMBERS = "numbers"
    NEAREST = """
    SELECT p.source, p.position, 1 - (p.vector <=> CAST(:vector AS vector)) AS cosine
    FROM pieces p JOIN documents d USING (tenant, source)
    WHERE p.tenant = :tenant AND p.model = :model AND p.numbers = :numbers
      AND (CAST(:knowledge_base AS text) IS NULL OR d.knowledge_base = CAST(:knowledge_base AS text))
    ORDER BY p.vector <=> CAST(:vector AS vector), p.source, p.position LIMIT :most
    """

    def __init__(self, address: str, *, patience: float = 0, idle: int = _IDLE) -> None:
        """Connect to `address` (`postgresql://...`), and bring its tables up to this version.

        `idle` seconds a transaction may do nothing.

        Raises:
            Problem: it is not there after `patience` seconds, or is none that tenants can share.
        """
        self._connections = Connections(address, patience=patience)
        self._current = threading.local()
        self._idle = f"{idle}s"

    def close(self) -> None:
        """End the connections."""
        self._connections.close()

    @contextmanager
    def transaction(self, tenant: str) -> Iterator[None]:
        """All or nothing of what is written within; whoever else writes for `tenant`, in any process, waits."""
        with self._begun(tenant):
            self.write("INSERT INTO tenants VALUES (:tenant) ON CONFLICT DO NOTHING", [{}])
            self.rows(tenant, "SELECT 1 FROM tenants WHERE tenant = :tenant FOR UPDATE")
            yield

    @contextmanager
    def reading(self, tenant: str) -> Iterator[None]:
        """Let the questions within be one transaction of `tenant`."""
        with self._begun(tenant):
            yield

    def rows(self, tenant: str, statement: str, **values: Any) -> list[Row]:
        """Return what a statement gives, whose `:tenant` is `tenant`: in the thread's transaction, or in its own."""
        text, names = _numbered(statement)
        arguments = [({**values, "tenant": tenant})[name] for name in names]
        if (connection := getattr(self._current, "connection", None)) is None:
            with self._begun(tenant) as connection:
                records = self._connections.run(connection.fetch(text, *arguments))
        elif tenant != self._current.tenant:
            raise ValueError("a transaction is one tenant's")
        else:
            records = self._connections.run(connection.fetch(text, *arguments))
        return [tuple(record) for record in records]

    def write(self, statement: str, rows: Sequence[Values]) -> None:
        """Run a statement once for each row, within a `transaction`, whose tenant is `:tenant`."""
        text, names = _numbered(statement)
        tenant = self._current.tenant
        arguments = [[({**row, "tenant": tenant})[name] for name in names] for row in rows]
        self._connections.run(self._current.connection.executemany(text, arguments))

    def tenants(self) -> list[str]:
        """Return who has, or has had, something."""
        return [tenant for (tenant,) in self.rows("", "SELECT tenant FROM tenants ORDER BY 1")]

    def with_words(self, tenant: str, query: str, knowledge_base: str | None, most: int) -> list[Row]:
        """Return (source, position, content) of pieces that have a word of a query, those with most of it first."""
        (stems,) = words.stems([" ".join(words.tokens(query))])
        if not stems:
            return []
        question = " | ".join(_lexeme(stem) for stem in stems)
        return self.rows(tenant, _WITH_WORDS, words=question, knowledge_base=knowledge_base, most=most)

    def _add_pieces(self, source: str, pieces: Sequence[Piece]) -> None:
        stems = words.stems([piece.content for piece in pieces])
        self.write(
            "INSERT INTO pieces (tenant, source, page, position, content, words) "
            "VALUES (:tenant, :source, :page, :position, :content, CAST(CAST(:words AS text) AS tsvector))",
            [
                {"source": source, "page": piece.page, "position": piece.position, "content": piece.content}
                | {"words": " ".join(f"{_lexeme(stem)}:{place}" for place, stem in enumerate(found, 1))}
                for piece, found in zip(pieces, stems, strict=True)
            ],
        )

    @contextmanager
    def _begun(self, tenant: str) -> Iterator[Any]:
        """Yield a connection in a transaction of `tenant`, which is the thread's until it ends."""
        with self._connections.begun() as connection:
            self._connections.run(connection.execute(_BEGUN, SETTING, tenant, self._idle))
            self._current.connection, self._current.tenant = connection, tenant
            try:
                yield connection
            finally:
                self._current.connection = None


def _numbered(statement: str) -> tuple[str, list[str]]:
    """Return a statement with `$1` for `:name`, and the names in that order."""
    names = list(dict.fromkeys(_NAME.findall(statement)))
    return _NAME.sub(lambda match: f"${names.index(match[1]) + 1}", statement), names


def _lexeme(stem: str) -> str:
    return "'" + stem.replace("\\", "\\\\").replace("'", "''") + "'"

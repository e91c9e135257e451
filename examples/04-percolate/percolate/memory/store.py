"""What the memory has, in either database. The tenant is a part of every key, and of every question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from percolate.memory.pieces import Document, Piece

Row = tuple[Any, ...]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Vectors that can be compared: those of one model, with as many numbers."""

    model: str
    numbers: int

    def __str__(self) -> str:
        return f"{self.model}, {self.numbers} numbers"


class Store(ABC):
    """A database. Its statements are those that SQLite and PostgreSQL both know, with values as `:name`."""

    NUMBERS: ClassVar[str]
    """SQL of how many numbers the vector of a piece has."""
    NEAREST: ClassVar[str]
    """The statement of `nearest`, with `:vector`, `:model`, `:numbers`, `:knowledge_base` and `:most`."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    @abstractmethod
    def transaction(self, tenant: str) -> AbstractContextManager[None]:
        """All or nothing of what is written within for `tenant`; whoever else writes for it waits.

        Raises:
            Problem: the database cannot be written, or is away.
            Full: its disk is full.
        """

    def reading(self, tenant: str) -> AbstractContextManager[None]:
        """Let the questions within be one transaction of `tenant`, where each alone costs several messages."""
        return nullcontext()

    @abstractmethod
    def rows(self, tenant: str, statement: str, **values: Any) -> list[Row]:
        """Return what a statement gives, whose `:tenant` is `tenant`.

        Raises:
            Problem: the database is away.
        """

    @abstractmethod
    def write(self, statement: str, rows: Sequence[Values]) -> None:
        """Run a statement once for each row, within a `transaction`, whose tenant is `:tenant`."""

    @abstractmethod
    def tenants(self) -> list[str]:
        """Return all who may have documents or entities."""

    @abstractmethod
    def with_words(self, tenant: str, query: str, knowledge_base: str | None, most: int) -> list[Row]:
        """Return (source, position, content) of pieces that have a word of a query, those with most of it first."""

    @abstractmethod
    def _add_pieces(self, source: str, pieces: Sequence[Piece]) -> None:
        """Write pieces of a document of the transaction's tenant, without vectors."""

    def digest(self, tenant: str, source: str) -> str:
        """Return the digest of a document, empty where there is no such one."""
        statement = "SELECT digest FROM documents WHERE tenant = :tenant AND source = :source"
        rows = self.rows(tenant, statement, source=source)
        return str(rows[0][0]) if rows else ""

    def replace(self, tenant: str, document: Document, pieces: Sequence[Piece]) -> None:
        """Put a document in the place of the one with its source; its pieces have no vectors yet."""
        values = {"source": document.source, "knowledge_base": document.knowledge_base}
        values |= {"type": document.type, "digest": document.digest}
        with self.transaction(tenant):
            self.write("DELETE FROM documents WHERE tenant = :tenant AND source = :source", [values])
            self.write("INSERT INTO documents VALUES (:tenant, :source, :knowledge_base, :type, :digest)", [values])
            self._add_pieces(document.source, pieces)

    def forget(self, tenant: str, *, but: Collection[str]) -> int:
        """Forget the documents of `tenant` whose sources are none of these; return how many there were."""
        rows = self.rows(tenant, "SELECT source FROM documents WHERE tenant = :tenant")
        gone = [{"source": source} for (source,) in rows if source not in but]
        if gone:
            with self.transaction(tenant):
                self.write("DELETE FROM documents WHERE tenant = :tenant AND source = :source", gone)
        return len(gone)

    def without_vector(self, tenant: str) -> list[tuple[int, str]]:
        """Return id and content of the pieces that have no vector."""
        statement = "SELECT id, content FROM pieces WHERE tenant = :tenant AND model IS NULL ORDER BY id"
        return [(key, content) for key, content in self.rows(tenant, statement)]

    def waiting(self, tenant: str) -> int:
        """Return how many pieces of `tenant` have no vector."""
        ((count,),) = self.rows(tenant, "SELECT count(*) FROM pieces WHERE tenant = :tenant AND model IS NULL")
        return int(count)

    def kinds(self, tenant: str) -> list[Kind]:
        """Return the kinds of vectors that the pieces of `tenant` have: one, but where the endpoint has changed."""
        statement = f"SELECT DISTINCT model, {self.NUMBERS} FROM pieces WHERE tenant = :tenant AND model IS NOT NULL"
        return [Kind(*row) for row in sorted(self.rows(tenant, statement))]

    def put_vectors(self, tenant: str, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Write the vectors of pieces, by their ids; one that is gone meanwhile is left out."""
        statement = "UPDATE pieces SET model = :model, vector = :vector WHERE tenant = :tenant AND id = :id"
        with self.transaction(tenant):
            self.write(statement, [{"model": model, "vector": vector, "id": key} for key, vector in vectors])

    def drop_vectors(self, tenant: str, kind: Kind) -> None:
        """Forget the vectors of `tenant` that are of a kind."""
        statement = (
            "UPDATE pieces SET model = NULL, vector = NULL "
            f"WHERE tenant = :tenant AND model = :model AND {self.NUMBERS} = :numbers"
        )
        with self.transaction(tenant):
            self.write(statement, [{"model": kind.model, "numbers": kind.numbers}])

    def nearest(self, tenant: str, model: str, vector: bytes, *, knowledge_base: str | None, most: int) -> list[Row]:
        """Return (source, position, cosine) of the pieces that are nearest to a vector, nearest first.

        The cosine of a vector of zeros is None or NaN.
        """
        values = {"model": model, "vector": vector, "numbers": len(vector) // 4}
        return self.rows(tenant, self.NEAREST, knowledge_base=knowledge_base, most=most, **values)

"""The SQLite file of the memory. The tenant is a part of every key, and of every question."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import sqlite_vec

from percolate.memory.pieces import Document, Piece
from percolate.problems import Full, Problem

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
  tenant TEXT NOT NULL, source TEXT NOT NULL, knowledge_base TEXT NOT NULL, type TEXT NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (tenant, source)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pieces (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, source TEXT NOT NULL, page INTEGER, position INTEGER NOT NULL,
  content TEXT NOT NULL, model TEXT, vector BLOB,
  UNIQUE (tenant, source, position),
  FOREIGN KEY (tenant, source) REFERENCES documents (tenant, source) ON DELETE CASCADE
);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
  content, content='pieces', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER IF NOT EXISTS piece_added AFTER INSERT ON pieces BEGIN
  INSERT INTO words (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER IF NOT EXISTS piece_removed AFTER DELETE ON pieces BEGIN
  INSERT INTO words (words, rowid, content) VALUES ('delete', old.id, old.content);
END;
CREATE TABLE IF NOT EXISTS entities (
  tenant TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, aliases TEXT NOT NULL,
  properties TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS relations (
  tenant TEXT NOT NULL, origin TEXT NOT NULL, relation TEXT NOT NULL, target TEXT NOT NULL,
  PRIMARY KEY (tenant, origin, relation, target),
  FOREIGN KEY (tenant, origin) REFERENCES entities (tenant, id) ON DELETE CASCADE,
  FOREIGN KEY (tenant, target) REFERENCES entities (tenant, id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS agentlets (
  tenant TEXT NOT NULL, uri TEXT NOT NULL, version INTEGER NOT NULL, description TEXT NOT NULL,
  output_schema TEXT NOT NULL, tools TEXT NOT NULL,
  PRIMARY KEY (tenant, uri, version)
) WITHOUT ROWID;
"""
_BUSY_SECONDS = 30
"""A second process (`python -m percolate.ingest`) may write meanwhile."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Vectors that can be compared: those of one model, with as many bytes."""

    model: str
    length: int

    def __str__(self) -> str:
        return f"{self.model}, {self.length // 4} numbers"


class Store:
    """One connection for all threads, one at a time."""

    def __init__(self, path: Path | str) -> None:
        """Open the file at `path`, or make it.

        Raises:
            Problem: it is none, cannot be opened or written, or this Python's SQLite can load no extension.
        """
        self._lock = RLock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
            )
        except sqlite3.OperationalError as error:
            raise Problem(f"{path}: {error}: is its folder there, and may it be written?") from None
        try:
            self._connection.enable_load_extension(True)
            sqlite_vec.load(self._connection)
            self._connection.enable_load_extension(False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.executescript(_SCHEMA)
        except AttributeError:
            self.close()
            raise Problem(
                "this Python was built without SQLite's extensions: take that of Debian, uv or conda"
            ) from None
        except sqlite3.OperationalError as error:
            self.close()
            raise Problem(f"{path}: {error}: another program has it, or it cannot be written") from None
        except sqlite3.DatabaseError as error:
            self.close()
            raise Problem(f"{path}: {error}: move it away, and the memory begins anew") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing of what is written within, for readers in other processes too.

        Raises:
            Problem: another process writes for too long, or the disk is full.
        """
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                    raise Full("does not fit: the disk of the memory, or its /tmp in a container, is full") from None
                if isinstance(error, sqlite3.OperationalError):
                    raise Problem(f"the memory cannot be written: {error}: nothing of it was lost, try again") from None
                raise

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what a statement gives."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def rows_of(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Return what a statement with named values gives."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def write(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row, within a `transaction`."""
        with self._lock:
            self._connection.executemany(statement, rows)

    def digest(self, tenant: str, source: str) -> str:
        """Return the digest of a document, empty where there is no such one."""
        rows = self.rows("SELECT digest FROM documents WHERE tenant = ? AND source = ?", tenant, source)
        return str(rows[0][0]) if rows else ""

    def replace(self, tenant: str, document: Document, pieces: Sequence[Piece]) -> None:
        """Put a document in the place of the one with its source; its pieces have no vectors yet."""
        key = (tenant, document.source)
        with self.transaction():
            self.write("DELETE FROM documents WHERE tenant = ? AND source = ?", [key])
            values = (*key, document.knowledge_base, document.type, document.digest)
            self.write("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", [values])
            self.write(
                "INSERT INTO pieces (tenant, source, page, position, content) VALUES (?, ?, ?, ?, ?)",
                [(*key, piece.page, piece.position, piece.content) for piece in pieces],
            )

    def tenants(self) -> list[str]:
        """Return who has documents or entities."""
        rows = self.rows("SELECT tenant FROM documents UNION SELECT tenant FROM entities ORDER BY 1")
        return [tenant for (tenant,) in rows]

    def forget(self, tenant: str, *, but: Collection[str]) -> int:
        """Forget the documents of `tenant` whose sources are none of these; return how many there were."""
        rows = self.rows("SELECT source FROM documents WHERE tenant = ?", tenant)
        gone = [(tenant, source) for (source,) in rows if source not in but]
        if gone:
            with self.transaction():
                self.write("DELETE FROM documents WHERE tenant = ? AND source = ?", gone)
        return len(gone)

    def without_vector(self, tenant: str) -> list[tuple[int, str]]:
        """Return id and content of the pieces that have no vector."""
        return self.rows("SELECT id, content FROM pieces WHERE tenant = ? AND model IS NULL ORDER BY id", tenant)

    def waiting(self, tenant: str) -> int:
        """Return how many pieces of `tenant` have no vector."""
        ((count,),) = self.rows("SELECT count(*) FROM pieces WHERE tenant = ? AND model IS NULL", tenant)
        return int(count)

    def kinds(self, tenant: str) -> list[Kind]:
        """Return the kinds of vectors that the pieces of `tenant` have: one, but where the endpoint has changed."""
        statement = (
            "SELECT DISTINCT model, length(vector) FROM pieces WHERE tenant = ? AND model IS NOT NULL ORDER BY 1, 2"
        )
        return [Kind(*row) for row in self.rows(statement, tenant)]

    def put_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Write the vectors of pieces, by their ids; one that is gone meanwhile is left out."""
        with self.transaction():
            rows = [(model, vector, key) for key, vector in vectors]
            self.write("UPDATE pieces SET model = ?, vector = ? WHERE id = ?", rows)

    def drop_vectors(self, tenant: str, kind: Kind) -> None:
        """Forget the vectors of `tenant` that are of a kind."""
        statement = (
            "UPDATE pieces SET model = NULL, vector = NULL WHERE tenant = ? AND model = ? AND length(vector) = ?"
        )
        with self.transaction():
            self.write(statement, [(tenant, kind.model, kind.length)])

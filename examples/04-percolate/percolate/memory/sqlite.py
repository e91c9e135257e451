"""The memory as a SQLite file: for one server, which needs nothing beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import sqlite_vec

from percolate.memory.pieces import Piece
from percolate.memory.store import Row, Store, Values
from percolate.memory.words import tokens
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
_WITH_WORDS = """
SELECT p.source, p.position, p.content
FROM words JOIN pieces p ON p.id = words.rowid JOIN documents d USING (tenant, source)
WHERE words MATCH :words AND p.tenant = :tenant
  AND (:knowledge_base IS NULL OR d.knowledge_base = :knowledge_base)
ORDER BY bm25(words), p.source, p.position LIMIT :most
"""
_BUSY_SECONDS = 30
"""A second process (`python -m percolate.ingest`) may write meanwhile."""
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
"""What a full disk is, and what a file is that may not grow (RLIMIT_FSIZE, a quota)."""


class SqliteStore(Store):
    """One connection for all threads, one at a time."""

    NUMBERS = "length(vector) / 4"
    NEAREST = """
    SELECT p.source, p.position, 1 - vec_distance_cosine(p.vector, :vector) AS cosine
    FROM pieces p JOIN documents d USING (tenant, source)
    WHERE p.tenant = :tenant AND p.model = :model AND length(p.vector) = 4 * :numbers
      AND (:knowledge_base IS NULL OR d.knowledge_base = :knowledge_base)
    ORDER BY cosine DESC, p.source, p.position LIMIT :most
    """

    def __init__(self, path: Path | str) -> None:
        """Open the file at `path`, or make it.

        Raises:
            Problem: it is none, cannot be opened or written, or this Python's SQLite can load no extension.
        """
        self._lock = RLock()
        self._tenant = ""
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
    def transaction(self, tenant: str) -> Iterator[None]:
        """All or nothing of what is written within, for readers in other processes too."""
        with self._lock:
            self._tenant = tenant
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode in _NO_ROOM:
                    raise Full("does not fit: the disk of the memory, or its /tmp in a container, is full") from None
                if isinstance(error, sqlite3.OperationalError):
                    raise Problem(f"the memory cannot be written: {error}: nothing of it was lost, try again") from None
                raise

    def rows(self, tenant: str, statement: str, **values: Any) -> list[Row]:
        """Return what a statement gives, whose `:tenant` is `tenant`."""
        with self._lock:
            return self._connection.execute(statement, values | {"tenant": tenant}).fetchall()

    def write(self, statement: str, rows: Sequence[Values]) -> None:
        """Run a statement once for each row, within a `transaction`, whose tenant is `:tenant`."""
        self._connection.executemany(statement, [{**row, "tenant": self._tenant} for row in rows])

    def tenants(self) -> list[str]:
        """Return who has documents or entities."""
        rows = self.rows("", "SELECT tenant FROM documents UNION SELECT tenant FROM entities ORDER BY 1")
        return [tenant for (tenant,) in rows]

    def with_words(self, tenant: str, query: str, knowledge_base: str | None, most: int) -> list[Row]:
        """Return (source, position, content) of pieces that have a word of a query, those with most of it first."""
        words = " OR ".join(f'"{word}"' for word in tokens(query))
        if not words:
            return []
        return self.rows(tenant, _WITH_WORDS, words=words, knowledge_base=knowledge_base, most=most)

    def _add_pieces(self, source: str, pieces: Sequence[Piece]) -> None:
        self.write(
            "INSERT INTO pieces (tenant, source, page, position, content) "
            "VALUES (:tenant, :source, :page, :position, :content)",
            [{"source": source, "page": p.page, "position": p.position, "content": p.content} for p in pieces],
        )

"""The audit of several gateways, in PostgreSQL: each has a chain of its own there, from its start to its end.

Rows are only added here. Their number and size stand beside them by part, of which the oldest go (`retention`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from pallas_contract.documents import audit_record
from pallas_contract.documents.audit_record import BEGIN, Link
from pallas_gateway.state.postgres import Connection, Postgres
from pallas_service.sqlite_file import CannotStore

BATCH = 500
"""Records of one transaction."""
PART = 16 << 20
"""Bytes of records of one part: as many rows as are removed in one transaction."""
_PARTS = 8
"""Parts that there are of a small size."""
MOST = 10_000
"""Records that wait to be stored; beyond them nothing more is recorded, and so nothing passed on."""


_STORE = """
WITH stored AS (
    INSERT INTO {schema}.audit (chain, seq, line) SELECT $1::text, * FROM unnest($2::bigint[], $3::text[])
    ON CONFLICT DO NOTHING RETURNING line
)
INSERT INTO {schema}.audit_parts AS part (chain, first, bytes)
SELECT $1::text, $4::bigint, coalesce(sum(octet_length(line)), 0) FROM stored
ON CONFLICT (chain, first) DO UPDATE SET bytes = part.bytes + excluded.bytes, written = now()
"""
"""Stores records, counts what is new of them into their part."""


class SharedTrail:
    """One chain, whose records are sealed at once and stored together with those that wait beside them."""

    forgets = False
    cut = 0
    broken = ""

    def __init__(self, store: Postgres, key: bytes, *, name: str, size: int) -> None:
        """`name` is that of this replica, for who reads the chains; `size` the bytes that all chains may have."""
        self._store = store
        self._key = key
        self._queue: deque[tuple[int, str]] = deque()
        self._stored = 0
        self._failed = 0
        self._storing = asyncio.Lock()
        self.chain = f"{name}-{secrets.token_hex(8)}"
        """Its name in the table."""
        self.part = 1
        """Number of the first record in the part that is added to."""
        self.part_begun = asyncio.Event()
        """Set when a part is full and another begun."""
        self._bytes = 0
        self._most = min(PART, size // _PARTS)
        self.head = Link(0, BEGIN)

    @property
    def is_behind(self) -> bool:
        """Return whether there is a whole batch to store."""
        return len(self._queue) >= BATCH

    def append(self, fields: Mapping[str, Any]) -> int:
        if self._failed:
            raise CannotStore(self._store.problem or "PostgreSQL")
        if len(self._queue) >= MOST:
            raise CannotStore(f"{MOST} records wait to be stored")
        line, self.head = audit_record.sealed(self._key, fields, self.head)
        self._queue.append((self.head.seq, line.decode().removesuffix("\n")))
        return self.head.seq

    async def kept(self, seq: int) -> None:
        """Wait until the record is stored: one of those that wait stores all that are there, the others find theirs."""
        while self._stored < seq:
            async with self._storing:
                if seq <= self._failed:
                    raise CannotStore("PostgreSQL")
                if self._stored < seq:
                    await self._store_some()

    async def sync(self) -> None:
        until = self.head.seq  # of what comes meanwhile there may be no end
        while self._stored < until and self._queue:
            async with self._storing:
                await self._store_some()

    def close(self) -> None:
        """Leave the database to who has opened it."""

    async def _store_some(self) -> None:
        """Store the oldest records that wait. What was stored, and nobody heard of it, is not stored twice."""
        batch = list(islice(self._queue, BATCH))
        if not batch:
            return
        numbers = [seq for seq, _ in batch]
        lines = [line for _, line in batch]

        part = numbers[0] if self._bytes > self._most else self.part

        async def write(connection: Connection) -> None:
            await connection.execute(_STORE.format(schema=self._store.schema), self.chain, numbers, lines, part)

        try:
            await self._store.run(write)
        except CannotStore:
            self._failed = self.head.seq
            raise
        self._failed = 0
        self._stored = numbers[-1]
        self._count(part, lines)
        for _ in batch:
            self._queue.popleft()

    def _count(self, part: int, lines: Sequence[str]) -> None:
        if part != self.part:
            self.part, self._bytes = part, 0
            self.part_begun.set()
        self._bytes += sum(map(len, lines))  # ASCII

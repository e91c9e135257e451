"""The audit of several gateways, in PostgreSQL: each has a chain of its own there, from its start to its end.

Rows are only added, so the gateway needs no right to change or remove any; how long they are kept is for who has them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pallas_contract.documents import audit_record
from pallas_contract.documents.audit_record import BEGIN, Link
from pallas_gateway.state.postgres import Connection, Postgres
from pallas_service.sqlite_file import CannotStore

BATCH = 500
"""Records of one transaction."""
MOST = 10_000
"""Records that wait to be stored; beyond them nothing more is recorded, and so nothing passed on."""


class SharedTrail:
    """One chain, whose records are sealed at once and stored together with those that wait beside them."""

    forgets = False
    cut = 0
    broken = ""

    def __init__(self, store: Postgres, key: bytes, *, name: str) -> None:
        """`name` is that of this replica, for who reads the chains."""
        self._store = store
        self._key = key
        self._queue: deque[tuple[int, str]] = deque()
        self._stored = 0
        self._failed = 0
        self._storing = asyncio.Lock()
        self.chain = f"{name}-{secrets.token_hex(8)}"
        """Its name in the table."""
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

        async def write(connection: Connection) -> None:
            await connection.execute(
                f"INSERT INTO {self._store.schema}.audit (chain, seq, line)"  # noqa: S608 - a name of ours
                " SELECT $1, * FROM unnest($2::bigint[], $3::text[]) ON CONFLICT DO NOTHING",
                self.chain,
                numbers,
                lines,
            )

        try:
            await self._store.run(write)
        except CannotStore:
            self._failed = self.head.seq
            raise
        self._failed = 0
        self._stored = numbers[-1]
        for _ in batch:
            self._queue.popleft()

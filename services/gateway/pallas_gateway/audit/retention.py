"""The size of the audit in PostgreSQL: the oldest parts of all chains go, as the oldest file does among files.

A replica removes parts of its own chain, after a record there that says so, and whole chains to which nobody adds any
more. Parts of a chain that another replica adds to are that one's to remove: nobody else can seal a record in it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import structlog

from pallas_gateway.state.postgres import Connection, Postgres
from pallas_service.sqlite_file import CannotStore

EACH = 300.0
"""Seconds after which the size is looked at, and a chain says that it goes on, where no part is full before."""
ENDED = 3600.0
"""Seconds in which a chain has not said so, after which nobody adds to it."""
_NO_END = (1 << 63) - 1
_ONE_PART = "audit_parts WHERE chain = $1 AND first = $2"
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """Records of one chain, from number `first` to the part after.

    `age` are the seconds since one was added to it, or its chain said that it goes on.
    """

    chain: str
    first: int
    bytes: int
    age: float


@dataclass(frozen=True, slots=True)
class Leaving:
    """Parts that go together, until record `until`; 0: all of their chain. `is_ours` says whether this replica may."""

    chain: str
    parts: tuple[Part, ...]
    until: int
    is_ours: bool

    @property
    def age(self) -> float:
        """Return the seconds since anything was added to them."""
        return self.parts[-1].age


class Chain(Protocol):
    """The chain of this replica."""

    chain: str
    part: int
    """Number of the first record in the part that is added to."""
    part_begun: asyncio.Event
    """Set when a part is full and another begun."""

    def append(self, fields: Mapping[str, Any]) -> int:
        """Add one record and return its number.

        Raises:
            CannotStore: it is not added.
        """

    async def kept(self, seq: int) -> None:
        """Wait until the record is stored.

        Raises:
            CannotStore: it may not be.
        """


class Retention:
    """Keeps all chains of a fleet within `size` bytes of records."""

    def __init__(self, store: Postgres, chain: Chain, size: int) -> None:
        self._store = store
        self._chain = chain
        self._size = size

    async def watch(self) -> None:
        """Look after the size for ever, whatever a round raises."""
        while True:
            self._chain.part_begun.clear()
            try:
                await self.tend()
            except CannotStore:
                pass  # what is away is told by who needs it for calls
            except Exception:
                log.exception("the size of the audit could not be looked after, the next round follows")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._chain.part_begun.wait(), EACH)

    async def tend(self) -> None:
        """Say that this chain goes on, and remove what is too much: once a record says so.

        Raises:
            CannotStore: the database is away; what was not removed is so in the next round.
        """
        for leaving in too_much(await self._parts(), self._chain.chain, self._chain.part, self._size):
            # `until` is of the chain in which it stands; of one that goes whole the name is all there is to say
            about = {"until": leaving.until} if leaving.until else {"chain": leaving.chain}
            await self._chain.kept(self._chain.append({"event": "dropped", **about}))
            ends = [*(part.first for part in leaving.parts[1:]), leaving.until + 1 if leaving.until else _NO_END]
            for part, end in zip(leaving.parts, ends, strict=True):
                await self._remove(part, end)

    async def _parts(self) -> list[Part]:
        schema = self._store.schema

        async def read(connection: Connection) -> list[Part]:
            # S608: names of ours
            goes_on = f"UPDATE {schema}.audit_parts SET written = now() WHERE chain = $1 AND first = $2"  # noqa: S608
            await connection.execute(goes_on, self._chain.chain, self._chain.part)
            rows = await connection.fetch(
                "SELECT chain, first, bytes, extract(epoch FROM now() - written)::float8 AS age"  # noqa: S608
                f" FROM {schema}.audit_parts ORDER BY chain, first"
            )
            return [Part(**row) for row in rows]

        return await self._store.run(read)

    async def _remove(self, part: Part, end: int) -> None:
        schema = self._store.schema

        async def remove(connection: Connection) -> None:
            for statement, number in (("audit WHERE chain = $1 AND seq < $2", end), (_ONE_PART, part.first)):
                await connection.execute(f"DELETE FROM {schema}.{statement}", part.chain, number)  # noqa: S608

        await self._store.run(remove)


def too_much(parts: Iterable[Part], own: str, current: int, size: int) -> list[Leaving]:
    """Return what this replica removes so that all parts together have `size` bytes, oldest first.

    `parts` are all that there are, those of a chain in order; `current` is the first record of the part that `own` adds
    to. Where the oldest is another replica's it is waited for: what remains is then of the same time in all chains.
    """
    chains: dict[str, list[Part]] = defaultdict(list)
    for part in parts:
        chains[part.chain].append(part)
    excess = sum(part.bytes for chain in chains.values() for part in chain) - size
    removed = []
    for leaving in sorted(_candidates(chains, own, current), key=lambda it: (-it.age, it.chain, it.parts[0].first)):
        if excess <= 0 or not leaving.is_ours:
            break
        removed.append(leaving)
        excess -= sum(part.bytes for part in leaving.parts)
    return removed


def _candidates(chains: Mapping[str, Sequence[Part]], own: str, current: int) -> Iterator[Leaving]:
    """Yield what goes together: a part where its chain goes on, else the chain.

    In a chain that has ended no record could say where the rest of it begins.
    """
    for chain, parts in chains.items():
        if chain != own and parts[-1].age > ENDED:
            yield Leaving(chain, tuple(parts), 0, is_ours=True)
            continue
        for part, following in pairwise(parts):
            yield Leaving(chain, (part,), following.first - 1, is_ours=chain == own and part.first < current)
        yield Leaving(chain, tuple(parts[-1:]), 0, is_ours=False)

"""Confirmations of several gateways, in PostgreSQL: asked for at one, decided at any, consumed once at any.

The rules are those of `confirmations`; the time is the database's, so that clocks of replicas need not agree.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Literal

from pallas_gateway.confirmation.confirmations import (
    MOST_ARGUMENTS,
    MOST_LISTED,
    SECONDS,
    SLACK,
    Answer,
    Counts,
    State,
    Wanted,
    readable,
    shown,
)
from pallas_gateway.state.postgres import Connection, Postgres, locked, now

_OF = "caller = $1 AND tenant = $2 AND agent = $3 AND tool = $4 AND digest = $5 AND policy = $6"
_PENDING = """
    SELECT id, name, tenant, agent, tool, length(asked), CASE WHEN length(asked) <= $2 THEN asked END, expires
    FROM {schema}.confirmations WHERE state = 'pending' AND $1 = ANY (approvers)
"""


class SharedConfirmations:
    """The confirmations of all gateways of a fleet. All of its methods raise CannotStore."""

    def __init__(self, store: Postgres, clock: Callable[[], float] | None = None) -> None:
        """`clock` stands for that of the database."""
        self._store = store
        self._clock = clock
        self._table = f"{store.schema}.confirmations"
        self._pending = _PENDING.format(schema=store.schema)

    async def redeem(self, wanted: Wanted) -> Answer:
        """Return the state of a call's confirmation: consumed by this call, or asked for.

        Raises:
            TooMany: it is not asked for.
        """
        readable(wanted)
        return await self._store.run(lambda connection: self._redeem(connection, wanted))

    async def pending(self, approver: str) -> list[dict[str, Any]]:
        """Return what waits for the word of `approver`, the oldest first."""

        async def read(connection: Connection) -> list[dict[str, Any]]:
            time = await self._sweep(connection)
            rows = await connection.fetch(f"{self._pending} ORDER BY expires, id", approver, MOST_LISTED)
            return [shown(tuple(row), time) for row in rows]

        return await self._store.run(read)

    async def find(self, id_: str, approver: str) -> dict[str, Any] | None:
        """Return what waits for the word of `approver` under an id, with all of its arguments."""

        async def read(connection: Connection) -> dict[str, Any] | None:
            time = await self._sweep(connection)
            row = await connection.fetchrow(f"{self._pending} AND id = $3", approver, MOST_ARGUMENTS, id_)
            return shown(tuple(row), time) if row else None

        return await self._store.run(read)

    async def decide(self, id_: str, approver: str, state: Literal["approved", "refused"]) -> bool:
        """Decide a confirmation, and return whether there was one to decide for `approver`."""

        async def write(connection: Connection) -> bool:
            await self._sweep(connection)
            row = await connection.fetchrow(
                f"UPDATE {self._table} SET state = $3, decided_by = $2 WHERE id = $1 AND state = 'pending'"  # noqa: S608
                " AND $2 = ANY (approvers) RETURNING id",
                id_,
                approver,
                state,
            )
            return row is not None

        return await self._store.run(write)

    async def _redeem(self, connection: Connection, wanted: Wanted) -> Answer:
        # one at a time, over all replicas: else two identical calls would ask two questions, or go beyond the counts
        await locked(connection, self._table)
        time = await self._sweep(connection)
        row = await connection.fetchrow(
            f"DELETE FROM {self._table} WHERE state = 'approved' AND id ="  # noqa: S608
            f" (SELECT id FROM {self._table} WHERE {_OF} AND state = 'approved' LIMIT 1)"
            " RETURNING id, 'consumed', expires",
            *wanted.key,
        )
        row = row or await connection.fetchrow(
            f"SELECT id, state, expires FROM {self._table}"  # noqa: S608
            f" WHERE {_OF} AND state IN ('pending', 'refused') LIMIT 1",
            *wanted.key,
        )
        id_, state, expires = row or await self._asked(connection, wanted, time + SECONDS)
        return Answer(id_, state, max(1, round(expires - time)))

    async def _asked(self, connection: Connection, wanted: Wanted, expires: float) -> tuple[str, State, float]:
        counted = await connection.fetchrow(
            "SELECT count(*) FILTER (WHERE caller = $1), count(*) FILTER (WHERE tenant = $2), count(*)"  # noqa: S608
            f" FROM {self._table}",
            wanted.caller,
            wanted.tenant,
        )
        Counts(*counted).check()
        id_ = secrets.token_urlsafe(16)
        caller, tenant, agent, tool, digest, policy = wanted.key
        await connection.execute(
            f"INSERT INTO {self._table}"  # noqa: S608
            " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending', '')",
            *(id_, caller, wanted.name, tenant, agent, tool, digest, wanted.text, policy, sorted(wanted.by), expires),
        )
        return id_, "pending", expires

    async def _sweep(self, connection: Connection) -> float:
        """Return the time, once what has expired is gone, and what expires later than any question of now."""
        time = await now(connection, self._clock)
        expired = f"DELETE FROM {self._table} WHERE expires <= $1 OR expires > $2"  # noqa: S608 - a name of ours
        await connection.execute(expired, time, time + SECONDS + SLACK)
        return time

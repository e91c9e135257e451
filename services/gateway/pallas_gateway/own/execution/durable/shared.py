"""The journal of several gateways, in PostgreSQL: a graph is begun at one, gone on with by any, run by one at a time.

A run is a lease that its gateway renews, by the database's time. Whoever takes a graph over gives its run another
number, and what comes under the one before is refused: a gateway that was only slow writes nothing into what it lost.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pallas_gateway.own.execution.durable import journal
from pallas_gateway.own.execution.durable.journal import Begun, Entry, Graph, Lost, Pace, Seen, Step
from pallas_gateway.state.postgres import Connection, Postgres, locked, now

LEASE = 30.0
"""Seconds for which a graph is a gateway's that is not heard of: three times those after which it is renewed."""
MOST_AT_ONCE = 20
"""Graphs of others that a gateway takes over at a time, so that all replicas have some of them."""
_FIND = "SELECT id, digest, state, starts, answer, holder, lease FROM {graphs} WHERE id = $1"
_INSERT = """
    INSERT INTO {graphs} (id, tenant, digest, asked, state, starts, begun, ended, answer, holder, run, lease)
    VALUES ($1, $2, $3, $4, 'running', 1, $5, 0, '', $6, 1, $7)
"""
_OPEN = "SELECT count(*) FROM {graphs} WHERE tenant = $1 AND state <> 'ended'"
_BEGIN = """
    UPDATE {graphs} SET starts = CASE state WHEN 'waiting' THEN 1 ELSE starts + 1 END, state = 'running', answer = '',
        run = run + 1, holder = $2, lease = $3
    WHERE id = $1 RETURNING id, digest, state, starts, answer, run
"""
_STEPS = "SELECT task, outcome FROM {steps} WHERE graph = $1"
_STEP = """
    INSERT INTO {steps} (graph, task, status, outcome)
    SELECT id, $3, $4, $5 FROM {graphs} WHERE id = $1 AND run = $2 AND state = 'running' FOR SHARE
    RETURNING task
"""
_WAIT = """
    UPDATE {graphs} SET state = 'waiting', ended = $3, answer = $4 WHERE id = $1 AND run = $2 AND state = 'running'
    RETURNING id
"""
_TENANT = "SELECT tenant FROM {graphs} WHERE id = $1 AND run = $2"
_END = """
    UPDATE {graphs} SET state = 'ended', ended = $3, answer = $4, asked = ''
    WHERE id = $1 AND run = $2 AND state = 'running' RETURNING id
"""
_FORGET = "DELETE FROM {steps} WHERE graph = $1"
_SWEEP = """
    DELETE FROM {graphs} WHERE id IN (SELECT id FROM (
        SELECT id, ended, row_number() OVER (ORDER BY ended DESC, id) AS place,
            sum(octet_length(answer)) OVER (ORDER BY ended DESC, id) AS size
        FROM {graphs} WHERE tenant = $1 AND state <> 'running') AS kept
    WHERE place > $2 OR size > $3 OR ended <= $4)
"""
_UNFINISHED = """
    SELECT id, tenant, digest, asked FROM {graphs} WHERE state = 'running' AND lease <= $1 AND id <> ALL ($2)
    ORDER BY begun, id LIMIT $3
"""
_RENEW = """
    UPDATE {graphs} AS kept SET lease = $3 FROM unnest($1::text[], $2::bigint[]) AS mine (id, run)
    WHERE kept.id = mine.id AND kept.run = mine.run RETURNING kept.id
"""
_LET_GO = "UPDATE {graphs} SET lease = 0 WHERE holder = $1 AND state = 'running' AND lease > 0 AND id <> ALL ($2)"
_LEAVE = """
    UPDATE {graphs} SET lease = 0, starts = starts - 1
    WHERE holder = $1 AND state = 'running' AND lease > 0 AND ($2::text IS NULL OR id = $2)
"""
_SEEN = "SELECT id, CASE WHEN state <> 'running' THEN answer END FROM {graphs} WHERE id = ANY ($1)"
_STATUSES = "SELECT graph, task, status FROM {steps} WHERE graph = ANY ($1) ORDER BY task"


class SharedJournal:
    """The journal of all gateways of a fleet, as one of them has it."""

    def __init__(
        self,
        store: Postgres,
        *,
        clock: Callable[[], float] | None = None,
        lease: float = LEASE,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` stands for that of the database, `lease` is in seconds of it; `monotonic` is that of this machine."""
        self._store = store
        self._clock = clock
        self._lease = lease
        self._monotonic = monotonic
        self._held: dict[str, float] = {}
        """When the lease of each graph that is run here was last asked for, by the clock of this machine."""
        self._tables = {"graphs": f"{store.schema}.graphs", "steps": f"{store.schema}.steps"}
        self._holder = secrets.token_hex(16)
        self.pace = pace

    @property
    def shared(self) -> SharedJournal:
        """Return itself: other replicas have the same rows."""
        return self

    async def find(self, id_: str) -> Entry | None:
        async def read(connection: Connection) -> Entry | None:
            row = await connection.fetchrow(self._sql(_FIND), id_)
            return _entry(row) if row else None

        return await self._store.run(read)

    async def begin(self, graph: Graph) -> Begun:
        async def write(connection: Connection) -> Begun:
            await self._alone(connection, graph.tenant)  # else two replicas would begin it, or go beyond the counts
            time = await now(connection, self._clock)
            row = await connection.fetchrow(f"{self._sql(_FIND)} FOR UPDATE", graph.id)
            if row is None:
                await self._insert(connection, graph, time)
                return Begun(Entry(graph.id, graph.digest, "running", 1, None), run=1)
            if row["digest"] != graph.digest or row["state"] == "ended" or self._is_anothers(row, time):
                return Begun(_entry(row))
            begun = await connection.fetchrow(self._sql(_BEGIN), graph.id, self._holder, time + self._lease)
            ended = dict(await connection.fetch(self._sql(_STEPS), graph.id))
            return Begun(_entry(begun), begun["run"], ended, again=row["state"] == "running")

        asked = self._monotonic()
        begun = await self._store.run(write)
        if begun.run is not None:
            self._held[graph.id] = asked
        return begun

    def holds(self, id_: str) -> bool:
        return id_ in self._held and self._monotonic() - self._held[id_] < self._lease

    async def step(self, id_: str, run: int, step: Step) -> None:
        about = (id_, run, step.task, step.status, step.outcome)
        await self._store.run(lambda connection: self._changed(connection, _STEP, *about))

    async def wait(self, id_: str, run: int, answer: dict[str, Any]) -> None:
        async def write(connection: Connection) -> None:
            time = await now(connection, self._clock)
            await self._changed(connection, _WAIT, id_, run, time, json.dumps(answer))

        await self._store.run(write)

    async def end(self, id_: str, run: int, answer: dict[str, Any]) -> None:
        async def write(connection: Connection) -> None:
            tenant = await self._changed(connection, _TENANT, id_, run)
            await self._alone(connection, tenant)
            time = await now(connection, self._clock)
            # what it was asked with is needed no longer, and may be private
            await self._changed(connection, _END, id_, run, time, json.dumps(answer))
            await connection.execute(self._sql(_FORGET), id_)
            await self._sweep(connection, tenant, time)

        await self._store.run(write)

    async def unfinished(self, without: Collection[str] = ()) -> list[Graph]:
        async def read(connection: Connection) -> list[Graph]:
            time = await now(connection, self._clock)
            rows = await connection.fetch(self._sql(_UNFINISHED), time, list(without), MOST_AT_ONCE)
            return [Graph(id_, *about, **json.loads(asked)) for id_, *about, asked in rows]

        return await self._store.run(read)

    async def renew(self, runs: Mapping[str, int]) -> set[str]:
        async def write(connection: Connection) -> set[str]:
            until = await now(connection, self._clock) + self._lease
            kept = await connection.fetch(self._sql(_RENEW), list(runs), list(runs.values()), until)
            await connection.execute(self._sql(_LET_GO), self._holder, list(runs))
            return runs.keys() - {row["id"] for row in kept}

        asked = self._monotonic()
        lost = await self._store.run(write)
        self._held = dict.fromkeys(runs.keys() - lost, asked)
        return lost

    async def seen(self, ids: Collection[str], watched: Collection[str]) -> dict[str, Seen]:
        async def read(connection: Connection) -> dict[str, Seen]:
            statuses: dict[str, dict[str, str]] = {}
            if watched:
                for graph, task, status in await connection.fetch(self._sql(_STATUSES), list(watched)):
                    statuses.setdefault(graph, {})[task] = status
            rows = await connection.fetch(self._sql(_SEEN), list(ids))
            return {id_: Seen(json.loads(text) if text else None, statuses.get(id_, {})) for id_, text in rows}

        return await self._store.run(read)

    async def leave(self, id_: str | None = None) -> None:
        await self._store.run(lambda connection: connection.execute(self._sql(_LEAVE), self._holder, id_))

    async def _changed(self, connection: Connection, statement: str, *values: object) -> Any:
        """Return what a statement returns of a run, which is nothing where the graph has another by now."""
        returned = await connection.fetchval(self._sql(statement), *values)
        if returned is None:
            raise Lost
        return returned

    async def _insert(self, connection: Connection, graph: Graph, time: float) -> None:
        await self._sweep(connection, graph.tenant, time)
        journal.check_open(graph.tenant, await connection.fetchval(self._sql(_OPEN), graph.tenant))
        asked = json.dumps({"params": graph.params, "sender": graph.sender})
        row = (graph.id, graph.tenant, graph.digest, asked, time, self._holder, time + self._lease)
        await connection.execute(self._sql(_INSERT), *row)

    def _is_anothers(self, row: Any, time: float) -> bool:
        return bool(row["state"] == "running" and row["lease"] > time and row["holder"] != self._holder)

    async def _alone(self, connection: Connection, tenant: str) -> None:
        await locked(connection, f"{self._tables['graphs']} {tenant}")

    async def _sweep(self, connection: Connection, tenant: str, time: float) -> None:
        """Forget the oldest graphs of a tenant that have ended or wait, beyond what is kept of it."""
        bounds = (journal.MOST_KEPT, journal.MOST_BYTES, time - journal.DAY)
        await connection.execute(self._sql(_SWEEP), tenant, *bounds)

    def _sql(self, statement: str) -> str:
        return statement.format(**self._tables)


def _entry(row: Any) -> Entry:
    answer = json.loads(row["answer"]) if row["answer"] else None
    return Entry(row["id"], row["digest"], row["state"], row["starts"], answer)

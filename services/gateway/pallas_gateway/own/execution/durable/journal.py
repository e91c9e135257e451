"""Rows of durable graphs: each by its tenant, caller and task id, with the outcomes of its tasks, then with its answer.

running -> ended, or -> waiting for a confirmation -> running. A row that is `running` when the gateway starts was under
way when it ended. Several gateways have one journal in PostgreSQL (`shared`), one alone has its file.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import sqlite3

    from pallas_gateway.state.database import Database

DAY = 86400.0
"""Seconds that an answer is kept, or a graph that waits."""
MOST_OPEN = 100
"""Graphs of a tenant that have not ended."""
MOST_KEPT = 1000
"""Graphs of a tenant that are kept, with those that have not ended."""
MOST_BYTES = 32 << 20
"""Characters of all answers of a tenant that are kept."""
State = Literal["running", "waiting", "ended"]
_ROW = "SELECT id, digest, state, starts, answer FROM graphs WHERE id = ?"
_OLD = (
    "SELECT id FROM (SELECT id, ended,"
    " row_number() OVER (ORDER BY ended DESC, id) AS place, sum(length(answer)) OVER (ORDER BY ended DESC, id) AS size"
    " FROM graphs WHERE tenant = ? AND state <> 'running') AS kept WHERE place > ? OR size > ? OR ended <= ?"
)
"""Ids of the graphs of a tenant that are kept no longer, the oldest of its own alone."""


class TooMany(Exception):
    """A tenant with more graphs under way than it may have."""


class Lost(Exception):
    """A graph that another replica goes on with: what this one has of it is not kept."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph as it is asked for. `id` is the same for the same tenant, caller and task id, `digest` for one body."""

    id: str
    tenant: str
    digest: str
    params: Mapping[str, Any] = field(repr=False)
    sender: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: `answer` is that of a graph that has ended, `starts` is how often it was begun."""

    id: str
    digest: str
    state: State
    starts: int
    answer: dict[str, Any] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of one task, as text; `status` is the word in it for who only hears of progress."""

    task: str
    status: str
    outcome: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Begun:
    """The entry of a graph, and where this gateway is to run it the number of that run, with what has `ended` of it.

    `again` says that it was under way before. Without a run it has ended, is another graph, or is run by a replica.
    """

    entry: Entry
    run: int | None = None
    ended: Mapping[str, str] = field(default_factory=dict, repr=False)
    again: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What another replica has made of a graph: an answer, or the status of each task that has ended."""

    answer: dict[str, Any] | None = field(repr=False)
    statuses: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two looks at what is shared: own leases, graphs that somebody waits for, those nobody runs."""

    renew: float = 10.0
    follow: float = 0.5
    resume: float = 2.0


class Shared(Protocol):
    """What several gateways with one journal ask besides. All of its methods raise CannotStore."""

    pace: Pace

    def holds(self, id_: str) -> bool:
        """Return whether no other replica can have taken over a graph that this gateway runs, by its own clock."""

    async def renew(self, runs: Mapping[str, int]) -> set[str]:
        """Keep the graphs that this gateway runs, by id, and let all others of it go; return those that it has lost."""

    async def seen(self, ids: Collection[str], watched: Collection[str]) -> dict[str, Seen]:
        """Return what has become of graphs of others, with statuses of those that are `watched`."""

    async def leave(self, id_: str | None = None) -> None:
        """Let go one graph of this gateway, or all of them: it ends, and none of them has ended it."""


class Journal(Protocol):
    """The store of durable graphs. All of its methods raise CannotStore; what they return is on disk.

    What names a run raises Lost where the graph has another one by now.
    """

    @property
    def shared(self) -> Shared | None:
        """Return what replicas ask besides, None where there are none."""

    async def find(self, id_: str) -> Entry | None:
        """Return the entry of a graph, None where there is none."""

    async def begin(self, graph: Graph) -> Begun:
        """Return a graph, made where there was none, as `running` from then on where it is to be run here.

        Raises:
            TooMany: it was not there, and may not be.
        """

    async def step(self, id_: str, run: int, step: Step) -> None:
        """Keep the outcome of a task of a graph."""

    async def end(self, id_: str, run: int, answer: dict[str, Any]) -> None:
        """Keep the answer of a graph, in the place of what it was and of all outcomes."""

    async def wait(self, id_: str, run: int, answer: dict[str, Any]) -> None:
        """Let a graph wait until it is asked for again; `answer` is for who waits at another replica."""

    async def unfinished(self, without: Collection[str] = ()) -> list[Graph]:
        """Return graphs that are `running` and that nobody runs, but those `without`, the oldest first."""


def graph_id(tenant: str, caller: str, task_id: str) -> str:
    """Return the id of a graph: no caller meets another's, whatever it calls its own."""
    return hashlib.sha256(json.dumps([tenant, caller, task_id]).encode()).hexdigest()


def check_open(tenant: str, open_: int) -> None:
    """Raise TooMany where a tenant has as many graphs that have not ended as it may have."""
    if open_ >= MOST_OPEN:
        raise TooMany(f"tenant `{tenant}` has {open_} graphs that have not ended, and may not have more")


class SqliteJournal:
    """The journal of one gateway, in its SQLite file, so that all runs are its own. `clock` is the time of day in s."""

    shared = None

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    async def find(self, id_: str) -> Entry | None:
        return await self._database.run(lambda connection: _find(connection, id_))

    async def begin(self, graph: Graph) -> Begun:
        def write(connection: sqlite3.Connection) -> Begun:
            entry = _find(connection, graph.id)
            if entry is None:
                self._insert(connection, graph)
            elif entry.state != "ended" and entry.digest == graph.digest:
                connection.execute(
                    "UPDATE graphs SET starts = CASE state WHEN 'waiting' THEN 1 ELSE starts + 1 END,"
                    " state = 'running' WHERE id = ?",
                    (graph.id,),
                )
            else:
                return Begun(entry)
            steps = connection.execute("SELECT task, outcome FROM steps WHERE graph = ?", (graph.id,)).fetchall()
            again = entry is not None and entry.state == "running"
            entry = _entry(connection.execute(_ROW, (graph.id,)).fetchone())
            return Begun(entry, run=1, ended=dict(steps), again=again)

        return await self._database.run(write)

    async def step(self, id_: str, run: int, step: Step) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO steps VALUES (?, ?, ?)", (id_, step.task, step.outcome))

        await self._database.run(write)

    async def end(self, id_: str, run: int, answer: dict[str, Any]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            # what it was asked with is needed no longer, and may be private
            connection.execute(
                "UPDATE graphs SET state = 'ended', ended = ?, asked = '', answer = ? WHERE id = ?",
                (self._clock(), json.dumps(answer), id_),
            )
            connection.execute("DELETE FROM steps WHERE graph = ?", (id_,))
            (tenant,) = connection.execute("SELECT tenant FROM graphs WHERE id = ?", (id_,)).fetchone()
            self._sweep(connection, tenant)

        await self._database.run(write)

    async def wait(self, id_: str, run: int, answer: dict[str, Any]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE graphs SET state = 'waiting', ended = ? WHERE id = ?", (self._clock(), id_))

        await self._database.run(write)

    async def unfinished(self, without: Collection[str] = ()) -> list[Graph]:
        def read(connection: sqlite3.Connection) -> list[Graph]:
            rows = connection.execute(
                "SELECT id, tenant, digest, asked FROM graphs WHERE state = 'running' ORDER BY begun, id"
            )
            return [Graph(id_, *about, **json.loads(asked)) for id_, *about, asked in rows if id_ not in without]

        return await self._database.run(read)

    def _insert(self, connection: sqlite3.Connection, graph: Graph) -> None:
        self._sweep(connection, graph.tenant)
        (open_,) = connection.execute(
            "SELECT count(*) FROM graphs WHERE tenant = ? AND state <> 'ended'", (graph.tenant,)
        ).fetchone()
        check_open(graph.tenant, open_)
        asked = json.dumps({"params": graph.params, "sender": graph.sender})
        connection.execute(
            "INSERT INTO graphs (id, tenant, digest, asked, state, starts, begun, ended, answer)"
            " VALUES (?, ?, ?, ?, 'running', 1, ?, 0, '')",
            (graph.id, graph.tenant, graph.digest, asked, self._clock()),
        )

    def _sweep(self, connection: sqlite3.Connection, tenant: str) -> None:
        """Forget the oldest graphs of a tenant that have ended or wait, beyond what is kept of it."""
        old = connection.execute(_OLD, (tenant, MOST_KEPT, MOST_BYTES, self._clock() - DAY)).fetchall()
        connection.executemany("DELETE FROM steps WHERE graph = ?", old)
        connection.executemany("DELETE FROM graphs WHERE id = ?", old)


def _find(connection: sqlite3.Connection, id_: str) -> Entry | None:
    row = connection.execute(_ROW, (id_,)).fetchone()
    return _entry(row) if row else None


def _entry(row: tuple[Any, ...]) -> Entry:
    id_, digest, state, starts, answer = row
    return Entry(id_, digest, state, starts, json.loads(answer) if answer else None)

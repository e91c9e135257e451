"""Rows of confirmations: asked for by a call, decided by another principal, consumed once (seed 004, Permissions).

pending -> approved -> consumed, or pending -> refused; each ends by its expiry. Nothing that a caller holds is a
permission: the identical call finds its row by what it is, and the id only names it to those who decide.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import sqlite3

    from pallas_gateway.state.database import Database

SECONDS = 600.0
"""Seconds in which a confirmation must be decided and consumed."""
MOST = 100
"""Confirmations that one caller may have open: who decides must be able to read them."""
MOST_OF_TENANT = 200
"""Those that all callers of a tenant may have open together, and all that are of none."""
MOST_IN_ALL = 1000
MOST_ARGUMENTS = 64 << 10
"""Characters of arguments that somebody is asked to read."""
MOST_LISTED = 4 << 10
"""Characters of arguments in a list, which so has 5 MB at most; longer ones are read one by one."""
DEPTH = 32
"""Levels of arguments that somebody is asked to read; JSON of some 10,000 can be read here and not written again."""
_SHOWN = 200
SLACK = 5.0
"""Seconds that clocks of two gateways, or of one before and after its restart, may differ."""
_OF = "caller = ? AND tenant = ? AND agent = ? AND tool = ? AND digest = ? AND policy = ?"
_CONSUME = (
    "DELETE FROM confirmations WHERE state = 'approved' AND id ="  # noqa: S608 - constants alone
    f" (SELECT id FROM confirmations WHERE {_OF} AND state = 'approved' LIMIT 1) RETURNING id, 'consumed', expires"
)
_FIND = f"SELECT id, state, expires FROM confirmations WHERE {_OF} AND state IN ('pending', 'refused') LIMIT 1"  # noqa: S608
_COUNT = "SELECT count(*) FILTER (WHERE caller = ?), count(*) FILTER (WHERE tenant = ?), count(*) FROM confirmations"
_EXPIRED = "DELETE FROM confirmations WHERE expires <= ? OR expires > ?"
_PENDING = (
    "SELECT id, name, tenant, agent, tool, length(asked), CASE WHEN length(asked) <= ? THEN asked END,"
    " expires FROM confirmations WHERE state = 'pending'"
    " AND EXISTS (SELECT 1 FROM json_each(approvers) WHERE value = ?)"
)
State = Literal["pending", "approved", "refused", "consumed"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The contents of a call: its arguments, and the rest of its parameters as far as the agent heeds them."""

    arguments: Mapping[str, Any] = field(repr=False)
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def written(self) -> dict[str, Any]:
        """Return what those who decide are shown."""
        return {"arguments": self.arguments, **({"more": self.more} if self.more else {})}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that must be confirmed. `caller` is the identity of its verified caller, `by` who may confirm it.

    `policy` is the version of the policy that asks for it.
    """

    caller: str
    name: str
    tenant: str
    agent: str
    tool: str
    asked: Asked
    policy: str
    by: frozenset[str]

    @property
    def text(self) -> str:
        """Return the contents as those who decide read them: every key in its place, every character escaped."""
        return json.dumps(self.asked.written(), sort_keys=True, allow_nan=False)

    @property
    def key(self) -> tuple[str, ...]:
        """Return what the identical call has the same."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return (self.caller, self.tenant, self.agent, self.tool, digest, self.policy)


@dataclass(frozen=True, slots=True)
class Answer:
    """The state in which a call finds its confirmation; `consumed` is the one in which it may go on, once."""

    id: str
    state: State
    seconds: int
    """Seconds until it expires."""


class Store(Protocol):
    """Where confirmations are kept: by one gateway, or by several. All of its methods raise CannotStore."""

    async def redeem(self, wanted: Wanted) -> Answer:
        """Return the state of a call's confirmation: consumed by this call, or asked for.

        Raises:
            TooMany: it is not asked for.
        """

    async def pending(self, approver: str) -> list[dict[str, Any]]:
        """Return what waits for the word of `approver`, the oldest first."""

    async def find(self, id_: str, approver: str) -> dict[str, Any] | None:
        """Return what waits for the word of `approver` under an id, with all of its arguments."""

    async def decide(self, id_: str, approver: str, state: Literal["approved", "refused"]) -> bool:
        """Decide a confirmation, and return whether there was one to decide for `approver`."""


class TooMany(Exception):
    """A caller that waits for more than anybody could decide, or asks with arguments that nobody could read."""


class Forward:
    """The time of day in seconds, which passes at least as fast as the steady clock: no row lives longer by it."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._now = wall()
        self._ticks = steady()

    def __call__(self) -> float:
        """Return the time."""
        ticks = self._steady()
        self._now = max(self._wall(), self._now + ticks - self._ticks)
        self._ticks = ticks
        return self._now


class Confirmations:
    """The confirmations of one gateway. All of its methods raise CannotStore; `clock` is asked in one thread."""

    def __init__(self, database: Database, clock: Callable[[], float] | None = None) -> None:
        self._database = database
        self._clock = clock or Forward()

    async def redeem(self, wanted: Wanted) -> Answer:
        """Return the state of a call's confirmation: consumed by this call, or asked for.

        Raises:
            TooMany: it is not asked for.
        """
        readable(wanted)
        return await self._database.run(lambda connection: self._redeem(connection, wanted))

    async def pending(self, approver: str) -> list[dict[str, Any]]:
        """Return what waits for the word of `approver`, the oldest first.

        Each has its `arguments`, and `more` where there is more, or `characters` where they are too long for a list.
        """

        def read(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            now = self._sweep(connection)
            rows = connection.execute(f"{_PENDING} ORDER BY expires, id", (MOST_LISTED, approver))
            return [shown(row, now) for row in rows]

        return await self._database.run(read)

    async def find(self, id_: str, approver: str) -> dict[str, Any] | None:
        """Return what waits for the word of `approver` under an id, with all of its arguments."""

        def read(connection: sqlite3.Connection) -> dict[str, Any] | None:
            now = self._sweep(connection)
            row = connection.execute(f"{_PENDING} AND id = ?", (MOST_ARGUMENTS, approver, id_)).fetchone()
            return shown(row, now) if row else None

        return await self._database.run(read)

    async def decide(self, id_: str, approver: str, state: Literal["approved", "refused"]) -> bool:
        """Decide a confirmation, and return whether there was one to decide for `approver`."""

        def write(connection: sqlite3.Connection) -> bool:
            self._sweep(connection)
            row = connection.execute("SELECT approvers FROM confirmations WHERE id = ?", (id_,)).fetchone()
            if row is None or approver not in json.loads(row[0]):
                return False
            written = connection.execute(
                "UPDATE confirmations SET state = ?, decided_by = ? WHERE id = ? AND state = 'pending'",
                (state, approver, id_),
            )
            return written.rowcount == 1

        return await self._database.run(write)

    def _redeem(self, connection: sqlite3.Connection, wanted: Wanted) -> Answer:
        now = self._sweep(connection)
        row = connection.execute(_CONSUME, wanted.key).fetchone() or connection.execute(_FIND, wanted.key).fetchone()
        id_, state, expires = row or self._asked(connection, wanted, now + SECONDS)
        return Answer(id_, state, max(1, round(expires - now)))

    def _sweep(self, connection: sqlite3.Connection) -> float:
        """Return the time, once what has expired is gone, and what expires later than any question of now."""
        now = self._clock()
        connection.execute(_EXPIRED, (now, now + SECONDS + SLACK))
        return now

    def _asked(self, connection: sqlite3.Connection, wanted: Wanted, expires: float) -> tuple[str, State, float]:
        of_caller, of_tenant, in_all = connection.execute(_COUNT, (wanted.caller, wanted.tenant)).fetchone()
        Counts(of_caller, of_tenant, in_all).check()
        id_ = secrets.token_urlsafe(16)
        caller, tenant, agent, tool, digest, policy = wanted.key
        approvers = json.dumps(sorted(wanted.by))
        connection.execute(
            "INSERT INTO confirmations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', '')",
            (id_, caller, wanted.name, tenant, agent, tool, digest, wanted.text, policy, approvers, expires),
        )
        return id_, "pending", expires


@dataclass(frozen=True, slots=True)
class Counts:
    """How many confirmations are open when one more is asked for."""

    of_caller: int
    of_tenant: int
    in_all: int

    def check(self) -> None:
        """Check that there may be one more.

        Raises:
            TooMany: there may not.
        """
        if self.of_caller >= MOST:
            raise TooMany(f"{self.of_caller} calls of this caller wait for a confirmation, and no more may")
        if self.of_tenant >= MOST_OF_TENANT or self.in_all >= MOST_IN_ALL:
            raise TooMany("too many calls wait for a confirmation: ask again when some are decided or have expired")


def readable(wanted: Wanted) -> None:
    """Check that somebody who decides could read what a call asks.

    Raises:
        TooMany: its arguments are too long or too deep, or have no form in JSON.
    """
    if _is_deeper(wanted.asked.written(), DEPTH + 1):
        raise TooMany(f"nobody can confirm arguments of more than {DEPTH} levels")
    try:
        length = len(wanted.text)
    except ValueError:
        raise TooMany("nobody can confirm arguments with numbers that JSON does not have") from None
    if length > MOST_ARGUMENTS:
        raise TooMany(f"nobody can confirm arguments of more than {MOST_ARGUMENTS} characters")


def shown(row: Sequence[Any], now: float) -> dict[str, Any]:
    """Return a row of what waits as those who decide are shown it."""
    id_, name, tenant, agent, tool, length, asked, expires = row
    return {
        "id": id_,
        "caller": name[:_SHOWN],
        "tenant": tenant or None,
        "agent": agent,
        "tool": tool,
        **({"characters": length} if asked is None else json.loads(asked)),
        "expires_in": max(1, round(expires - now)),
    }


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether a value has more than `levels` of objects and arrays in each other."""
    level: list[Any] = [value]
    for _ in range(levels + 1):
        inner = [entry.values() if isinstance(entry, Mapping) else entry for entry in level if _has_entries(entry)]
        if not inner:
            return False
        level = [entry for entries in inner for entry in entries]
    return True


def _has_entries(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple)

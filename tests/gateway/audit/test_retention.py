"""The size of the audit in a real PostgreSQL: what goes is the oldest, and what stays can be checked as before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from pallas_contract.documents import audit_check
from pallas_gateway.audit import retention
from pallas_gateway.audit.retention import ENDED, Part, Retention, too_much
from pallas_gateway.audit.shared_trail import SharedTrail
from pallas_gateway.state.postgres import Postgres
from pallas_service.http.shutdown import background
from pallas_service.sqlite_file import CannotStore
from tests.gateway.state.stores import LIMIT, Server, postgres, postgres_url

KEY = b"0123456789abcdef"
SIZE = 400_000
RECORD = {"event": "decision", "name": "x" * 200}


def removed(*parts: Part, size: int = 100, current: int = 9) -> list[tuple[str, list[int], int]]:
    """What replica `a` removes, whose part at `current` is added to."""
    return [
        (leaving.chain, [part.first for part in leaving.parts], leaving.until)
        for leaving in too_much(parts, "a", current, size)
    ]


def test_nothing_goes_while_there_is_room() -> None:
    assert removed(Part("a", 1, 50, 9.0), Part("a", 9, 50, 0.0)) == []


def test_the_oldest_parts_of_its_own_go_until_there_is_room_and_never_the_last() -> None:
    parts = [Part("a", 1, 50, 30.0), Part("a", 4, 50, 20.0), Part("a", 9, 50, 0.0)]
    assert removed(*parts) == [("a", [1], 3)]
    assert removed(*parts, size=10) == [("a", [1], 3), ("a", [4], 8)]


def test_the_oldest_of_a_chain_that_goes_on_is_left_to_who_can_say_so_in_it() -> None:
    others = [Part("b", 1, 50, 40.0), Part("b", 5, 10, 1.0)]
    assert removed(Part("a", 1, 50, 30.0), Part("a", 9, 50, 0.0), *others) == []
    assert removed(Part("a", 1, 50, 50.0), Part("a", 9, 50, 0.0), *others, size=10) == [("a", [1], 8)]


def test_a_chain_that_has_ended_goes_whole() -> None:
    ended = [Part("b", 1, 10, ENDED + 9), Part("b", 5, 90, ENDED + 1)]
    assert removed(Part("a", 1, 5, 30.0), Part("a", 9, 5, 0.0), *ended) == [("b", [1, 5], 0)]
    assert removed(Part("a", 1, 20, ENDED + 5), Part("a", 9, 60, 0.0), *ended) == [
        ("a", [1], 8),
        ("b", [1, 5], 0),
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@asynccontextmanager
async def replica(server: Server, fleet: str) -> AsyncIterator[tuple[SharedTrail, Retention, Postgres]]:
    store = Postgres(postgres_url(server), fleet, seconds=LIMIT)
    trail = SharedTrail(store, KEY, name="gateway-0", size=SIZE)
    try:
        yield trail, Retention(store, trail, SIZE), store
    finally:
        await store.close()


async def write(trail: SharedTrail, count: int) -> None:
    for _ in range(count // 100):
        for _ in range(100):
            seq = trail.append(RECORD)
        await trail.kept(seq)


async def stored(store: Postgres, chain: str) -> list[bytes]:
    text = f"SELECT line FROM {store.schema}.audit WHERE chain = $1 ORDER BY seq"
    return [f"{row['line']}\n".encode() for row in await store.run(lambda c: c.fetch(text, chain))]


async def aged(store: Postgres, chain: str) -> None:
    """Nobody has added to the chain for two hours."""
    text = f"UPDATE {store.schema}.audit_parts SET written = now() - interval '2 hours' WHERE chain = $1"
    await store.run(lambda c: c.execute(text, chain))


async def test_the_oldest_goes_and_what_stays_is_whole(server: Server) -> None:
    async with replica(server, "one") as (trail, kept, store):
        await write(trail, 1200)
        before = len(await stored(store, trail.chain))
        assert before == 1200
        await kept.tend()
        await kept.tend()
        lines = await stored(store, trail.chain)
        checked = audit_check.check([("audit-000000000001.jsonl", lines)], KEY, head=trail.head, whole=True)
        assert checked.problems == []
        first = json.loads(lines[0])["seq"]
        assert first > 1
        assert sum(map(len, lines)) <= SIZE * 1.2  # the part that is added to stays
        assert json.loads(lines[-1])["until"] == first - 1

        one_less = audit_check.check([("audit-000000000001.jsonl", lines[1:])], KEY, whole=True).problems
        assert [problem.level for problem in one_less] == ["error"]  # which the gateway has not removed


async def test_it_looks_when_a_part_is_full(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "EACH", LIMIT)
    async with replica(server, "watched") as (trail, kept, store), background(kept.watch()), asyncio.timeout(LIMIT):
        while b'"until"' not in b"".join(await stored(store, trail.chain)):
            await write(trail, 100)


async def test_a_chain_that_nobody_adds_to_goes_whole_and_one_that_says_that_it_goes_on_stays(server: Server) -> None:
    async with replica(server, "two") as (old, idle, store), replica(server, "two") as (trail, kept, _):
        await write(old, 800)
        await aged(store, old.chain)
        await idle.tend()
        await write(trail, 1200)
        await kept.tend()
        assert len(await stored(store, old.chain)) == 800
        await aged(store, old.chain)
        await kept.tend()
        assert await stored(store, old.chain) == []
        lines = [json.loads(line) for line in await stored(store, trail.chain)]
        assert [line["chain"] for line in lines if line["event"] == "dropped" and "chain" in line] == [old.chain]
        checked = audit_check.check(
            [("audit-000000000001.jsonl", await stored(store, trail.chain))], KEY, head=trail.head, whole=True
        )
        assert checked.problems == []


async def test_nothing_is_removed_that_no_record_says(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async with replica(server, "away") as (trail, kept, store):
        await write(trail, 1600)

        async def refused(seq: int) -> None:
            raise CannotStore("PostgreSQL")

        monkeypatch.setattr(trail, "kept", refused)
        with pytest.raises(CannotStore):
            await kept.tend()
        assert len(await stored(store, trail.chain)) == 1600

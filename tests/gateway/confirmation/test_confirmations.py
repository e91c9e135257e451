"""Confirmations in the real store: another principal decides, the identical call consumes, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pallas_gateway.confirmation import confirmations as module
from pallas_gateway.confirmation.confirmations import Asked, Confirmations, Forward, Store, TooMany, Wanted
from pallas_gateway.confirmation.shared import SharedConfirmations
from pallas_gateway.state.database import Database
from pallas_gateway.state.postgres import Postgres
from tests.gateway.state.stores import LIMIT, Server, postgres, postgres_url

WANTED = Wanted(
    caller='["phone"]',
    name="phone",
    tenant="acme",
    agent="home-tools",
    tool="delete_task",
    asked=Asked({"id": 7, "why": "done"}),
    policy="policy-1",
    by=frozenset({"parent", "desk"}),
)


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@pytest.fixture(params=["one file", "PostgreSQL"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, now: list[float]) -> AsyncIterator[Store]:
    if request.param == "one file":
        database = Database(tmp_path / "gateway.db")
        yield Confirmations(database, lambda: now[0])
        database.close()
    else:
        shared = Postgres(postgres_url(request.getfixturevalue("server")), request.node.name, seconds=LIMIT)
        yield SharedConfirmations(shared, lambda: now[0])
        await shared.close()


async def test_a_call_waits_for_another_principal_and_runs_once(store: Store) -> None:
    asked = await store.redeem(WANTED)
    assert (asked.state, asked.seconds) == ("pending", 600)
    assert await store.redeem(WANTED) == asked  # asking again is no permission, and no second question
    (shown,) = await store.pending("parent")
    assert shown == {
        "id": asked.id,
        "caller": "phone",
        "tenant": "acme",
        "agent": "home-tools",
        "tool": "delete_task",
        "arguments": {"id": 7, "why": "done"},
        "expires_in": 600,
    }
    assert await store.pending("phone") == []
    assert not await store.decide(asked.id, "phone", "approved")
    assert not await store.decide("nothing", "parent", "approved")
    assert await store.decide(asked.id, "parent", "approved")
    assert not await store.decide(asked.id, "desk", "refused")  # it is decided
    assert await store.pending("parent") == []
    consumed = await store.redeem(WANTED)
    assert (consumed.id, consumed.state) == (asked.id, "consumed")
    again = await store.redeem(WANTED)
    assert again.state == "pending"
    assert again.id != asked.id


@pytest.mark.parametrize(
    "change",
    [
        {"caller": '["desk"]'},
        {"tenant": "home"},
        {"agent": "other"},
        {"tool": "delete_tasks"},
        {"asked": Asked({"id": 8, "why": "done"})},
        {"asked": Asked({"id": 7.0, "why": "done"})},
        {"asked": Asked(WANTED.asked.arguments, {"requestState": "s"})},
        {"policy": "policy-2"},
    ],
)
async def test_no_other_call_consumes_it(store: Store, change: dict[str, object]) -> None:
    asked = await store.redeem(WANTED)
    assert await store.decide(asked.id, "parent", "approved")
    assert (await store.redeem(replace(WANTED, **change))).state == "pending"  # type: ignore[arg-type]
    in_another_order = replace(WANTED, asked=Asked({"why": "done", "id": 7}))
    assert (await store.redeem(in_another_order)).state == "consumed"


async def test_a_refusal_holds_until_it_expires(store: Store, now: list[float]) -> None:
    asked = await store.redeem(WANTED)
    assert await store.decide(asked.id, "desk", "refused")
    assert (await store.redeem(WANTED)).state == "refused"
    now[0] += 600
    assert (await store.redeem(WANTED)).state == "pending"


@pytest.mark.parametrize("approved", [False, True])
async def test_what_has_expired_is_worth_nothing(store: Store, now: list[float], approved: bool) -> None:
    asked = await store.redeem(WANTED)
    if approved:
        assert await store.decide(asked.id, "parent", "approved")
    now[0] += 600
    assert not await store.decide(asked.id, "parent", "approved")
    assert await store.pending("parent") == []
    answer = await store.redeem(WANTED)
    assert (answer.state, answer.id == asked.id) == ("pending", False)


async def test_a_thousand_redemptions_at_once_are_one_execution(store: Store) -> None:
    asked = await store.redeem(WANTED)
    assert await store.decide(asked.id, "parent", "approved")
    count = 1000 if isinstance(store, Confirmations) else 100  # there a thousand come from three replicas, below
    answers = await asyncio.gather(*(store.redeem(WANTED) for _ in range(count)))
    assert Counter(answer.state for answer in answers) == {"consumed": 1, "pending": count - 1}


async def test_two_gateways_on_one_file_do_not_consume_it_twice(tmp_path: Path) -> None:
    databases = [Database(tmp_path / "gateway.db") for _ in range(2)]
    first, second = (Confirmations(database) for database in databases)
    asked = await first.redeem(WANTED)
    assert await second.decide(asked.id, "parent", "approved")
    answers = await asyncio.gather(*(store.redeem(WANTED) for store in (first, second) for _ in range(20)))
    assert Counter(answer.state for answer in answers)["consumed"] == 1
    for database in databases:
        database.close()


async def test_replicas_on_one_store_execute_a_confirmed_call_once(server: Server) -> None:
    """A thousand redemptions at once of one confirmation, over three replicas (seed 004)."""
    stores = [Postgres(postgres_url(server), "three replicas", seconds=LIMIT) for _ in range(3)]
    replicas = [SharedConfirmations(store) for store in stores]
    asked = await replicas[0].redeem(WANTED)
    assert await replicas[1].decide(asked.id, "parent", "approved")
    answers = await asyncio.gather(*(replicas[index % 3].redeem(WANTED) for index in range(1000)))
    assert Counter(answer.state for answer in answers) == {"consumed": 1, "pending": 999}
    assert len({answer.id for answer in answers}) == 2  # who came later asks one question, all together
    for store in stores:
        await store.close()


async def test_a_caller_cannot_fill_the_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    for number in range(3):
        await store.redeem(replace(WANTED, asked=Asked({"id": number})))
    with pytest.raises(TooMany, match="3 calls of this caller wait"):
        await store.redeem(WANTED)
    assert (await store.redeem(replace(WANTED, caller='["desk"]'))).state == "pending"
    with pytest.raises(TooMany, match="arguments of more than"):
        await store.redeem(replace(WANTED, caller='["ann"]', asked=Asked({"text": "x" * (65 << 10)})))


async def test_it_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    database = Database(path)
    asked = await Confirmations(database).redeem(WANTED)
    assert await Confirmations(database).decide(asked.id, "parent", "approved")
    database.close()
    database = Database(path)
    assert (await Confirmations(database).redeem(WANTED)).state == "consumed"
    assert (await Confirmations(database).redeem(WANTED)).state == "pending"
    database.close()


def nested(levels: int) -> dict[str, Any]:
    """Return arguments of so many levels."""
    value: Any = {}
    for _ in range(levels - 1):
        value = [value]
    return {"id": value} if levels else {}


async def test_arguments_that_nobody_can_read_are_not_asked_for(store: Store) -> None:
    assert (await store.redeem(replace(WANTED, asked=Asked(nested(module.DEPTH - 1))))).state == "pending"
    for levels in (module.DEPTH, 5000, 100_000):
        with pytest.raises(TooMany, match="32 levels"):
            await store.redeem(replace(WANTED, asked=Asked(nested(levels))))
        with pytest.raises(TooMany, match="32 levels"):
            await store.redeem(replace(WANTED, asked=Asked({}, nested(levels))))


async def test_a_list_has_no_long_arguments(store: Store) -> None:
    long = {"text": "x" * module.MOST_LISTED}
    asked = await store.redeem(replace(WANTED, asked=Asked(long)))
    (listed,) = await store.pending("parent")
    assert ("arguments" in listed, listed["characters"]) == (
        False,
        module.MOST_LISTED + len('{"arguments": {"text": ""}}'),
    )
    entry = await store.find(asked.id, "parent")
    assert entry is not None
    assert ("characters" in entry, entry["arguments"]) == (False, long)
    assert await store.find(asked.id, "phone") is None
    assert await store.decide(asked.id, "parent", "approved")
    assert await store.find(asked.id, "parent") is None


async def test_callers_together_cannot_fill_the_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_TENANT", 2)
    monkeypatch.setattr(module, "MOST_IN_ALL", 3)
    asked = [await store.redeem(replace(WANTED, caller=caller)) for caller in ("a", "b")]
    with pytest.raises(TooMany, match="too many calls wait"):
        await store.redeem(replace(WANTED, caller="c"))
    await store.redeem(replace(WANTED, caller="c", tenant="home"))
    with pytest.raises(TooMany, match="too many calls wait"):
        await store.redeem(replace(WANTED, caller="d", tenant="other"))
    assert await store.decide(asked[0].id, "parent", "approved")
    assert (await store.redeem(replace(WANTED, caller="a"))).state == "consumed"
    assert (await store.redeem(replace(WANTED, caller="d", tenant="other"))).state == "pending"


async def test_a_refusal_counts_until_it_expires(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    asked = await store.redeem(WANTED)
    assert await store.decide(asked.id, "parent", "refused")
    with pytest.raises(TooMany, match="1 calls of this caller"):
        await store.redeem(replace(WANTED, asked=Asked({})))


async def test_what_was_asked_for_in_the_future_is_worth_nothing(store: Store, now: list[float]) -> None:
    asked = await store.redeem(WANTED)
    assert await store.decide(asked.id, "parent", "approved")
    now[0] -= 60
    assert (await store.redeem(WANTED)).state == "pending"


def test_a_clock_that_is_set_back_does_not_stop() -> None:
    wall = [1000.0]
    steady = [5.0]
    clock = Forward(lambda: wall[0], lambda: steady[0])
    times = [clock()]
    for change, ticks in ((10.0, 10.0), (-500.0, 20.0), (0.0, 30.0), (3600.0, 0.0)):  # the last: the machine has slept
        wall[0] += change
        steady[0] += ticks
        times.append(clock())
    assert times == [1000, 1010, 1030, 1060, 4110]


async def test_who_decides_reads_all_that_is_asked(store: Store) -> None:
    answers = {"inputResponses": {"sure": {"action": "accept"}}}
    await store.redeem(replace(WANTED, asked=Asked({}, answers)))
    (listed,) = await store.pending("parent")
    assert (listed["arguments"], listed["more"]) == ({}, answers)

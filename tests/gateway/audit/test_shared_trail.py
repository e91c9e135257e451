"""The audit of several gateways in a real PostgreSQL: nothing is passed on without its record, come what may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from pallas_contract.documents import audit_check
from pallas_gateway.audit import recorder
from pallas_gateway.audit.recorder import Audit
from pallas_gateway.audit.shared_trail import SharedTrail
from pallas_gateway.confirmation.gatekeeper import Gatekeeper, Unconfirmed
from pallas_gateway.confirmation.shared import SharedConfirmations
from pallas_gateway.data_plane.checks import Checks, Stopped
from pallas_gateway.data_plane.record import Call, Record
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.postgres import Postgres
from pallas_service.http.shutdown import background
from tests.gateway.confirmation.test_confirmations import WANTED
from tests.gateway.state.stores import LIMIT, Server, postgres, postgres_url

KEY = b"0123456789abcdef"
CALL = Call("scout", "phone", "tools/call", "echo")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@asynccontextmanager
async def gateway(server: Server, fleet: str) -> AsyncIterator[tuple[Audit, SharedTrail, Postgres]]:
    """One replica, with what runs beside its calls."""
    store = Postgres(postgres_url(server), fleet, seconds=LIMIT)
    trail = SharedTrail(store, KEY, name="gateway-0", size=1 << 30)
    audit = Audit(trail, KEY, "policy-1")
    try:
        audit.start()
        async with background(audit.watch()):
            yield audit, trail, store
        await audit.stop()
    finally:
        await store.close()


async def lines(store: Postgres, chain: str) -> list[bytes]:
    text = f"SELECT line FROM {store.schema}.audit WHERE chain = $1 ORDER BY seq"
    return [f"{row['line']}\n".encode() for row in await store.run(lambda c: c.fetch(text, chain))]


async def records(store: Postgres, chain: str) -> list[dict[str, Any]]:
    """Return what is stored of a chain, as far as it follows."""
    stored = await lines(store, chain)
    assert audit_check.check([("audit-000000000001.jsonl", stored)], KEY, whole=True).problems == []
    return [json.loads(line) for line in stored]


async def test_a_decision_is_stored_before_its_call_is_passed_on(server: Server) -> None:
    async with gateway(server, "doors") as (audit, trail, store):
        number = await Checks(Policy.open(), audit).recorded(CALL)
        stored = await records(store, trail.chain)
        assert [record["event"] for record in stored] == ["started", "decision"]
        assert number == 2
        audit.end(Record(replace(CALL, decision=number), "answered", 200, 0.1))
        await audit.sync()
        assert (await records(store, trail.chain))[-1]["event"] == "outcome"
        assert audit.head == str(trail.head)
    reader = Postgres(postgres_url(server), "doors", seconds=LIMIT)
    assert (await records(reader, trail.chain))[-1]["event"] == "stopped"
    await reader.close()


async def test_calls_at_once_are_stored_together_in_chains_of_their_own(server: Server) -> None:
    async with gateway(server, "doors") as one, gateway(server, "doors") as two:
        calls = [Checks(Policy.open(), audit).recorded(CALL) for audit, _, _ in (one, two) for _ in range(700)]
        assert await asyncio.gather(*calls) == [*range(2, 702)] * 2
        for _, trail, store in (one, two):
            assert len(await records(store, trail.chain)) == 701


async def test_a_line_that_somebody_changes_is_found(server: Server) -> None:
    async with gateway(server, "doors") as (audit, trail, store):
        await Checks(Policy.open(), audit).recorded(CALL)
        stored = await lines(store, trail.chain)
        stored[-1] = stored[-1].replace(b'"phone"', b'"parent"')
        (problem,) = audit_check.check([("audit-000000000001.jsonl", stored)], KEY, whole=True).problems
        assert problem.level == "error"


async def test_without_the_store_nothing_passes_and_all_goes_on_once_it_is_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "SYNC_SECONDS", 0.05)
    async with gateway(server, "away") as (audit, trail, store):
        checks = Checks(Policy.open(), audit)
        keeper = Gatekeeper(SharedConfirmations(store), audit.confirmation)
        before = replace(CALL, decision=await checks.recorded(CALL))
        server.stop()
        try:
            audit.end(Record(before, "answered", 200, 0.1))
            for _ in range(3):
                with pytest.raises(Stopped) as stopped:
                    await checks.recorded(CALL)
                assert stopped.value.reason == "unrecorded"
            with pytest.raises(Unconfirmed) as unconfirmed:
                await keeper.let_through(WANTED)
            assert unconfirmed.value.reason == "confirmation_unavailable"
            assert "the audit cannot be written" in audit.problem
            audit.end(Record(CALL, "unrecorded", 200, 0.1))
        finally:
            server.start()
        async with asyncio.timeout(LIMIT):
            while audit.problem:
                await asyncio.sleep(0.02)
        assert await checks.recorded(CALL) == trail.head.seq
        with pytest.raises(Unconfirmed, match="another caller must confirm"):
            await keeper.let_through(WANTED)
        events = [record["event"] for record in await records(store, trail.chain)]
        # the outcome of before was kept; what could not be recorded meanwhile is counted
        assert events[:3] == ["started", "decision", "outcome"]
        assert "lost" in events
        assert events[-2:] == ["decision", "confirmation"]


async def test_a_caller_that_hangs_up_loses_no_record_of_others(server: Server) -> None:
    async with gateway(server, "doors") as (audit, trail, store):
        checks = Checks(Policy.open(), audit)
        await checks.recorded(CALL)
        tasks = [asyncio.create_task(checks.recorded(CALL)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        kept = {answer for answer in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(answer, int)}
        assert len(kept) >= 10
        stored = {record["seq"] for record in await records(store, trail.chain)}
        assert kept <= stored


class Busy(Postgres):
    """A store that hears of one more record each time it has stored some."""

    def __init__(self) -> None:
        super().__init__("postgresql://nobody@127.0.0.1:1/none", "busy")
        self.trail = SharedTrail(self, KEY, name="gateway-0", size=1 << 30)

    async def run(self, work: Any) -> Any:
        await asyncio.sleep(0)
        self.trail.append({"event": "outcome"})


async def test_what_comes_while_all_is_stored_is_not_waited_for() -> None:
    trail = Busy().trail
    for _ in range(3):
        seq = trail.append({"event": "decision"})
    async with asyncio.timeout(LIMIT):
        await trail.sync()
        await trail.kept(seq)
    assert trail.head.seq == seq + 1

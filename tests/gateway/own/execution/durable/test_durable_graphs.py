"""Durable graphs before a real MCP server of the SDK, with the gateway ended in the middle and started again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pallas_contract.fleet.access_model import Gateway, Tenant
from pallas_gateway.confirmation.confirmations import Confirmations
from pallas_gateway.confirmation.gatekeeper import Gatekeeper, nothing
from pallas_gateway.own.execution.durable import graphs as module
from pallas_gateway.own.execution.durable.journal import SqliteJournal
from pallas_gateway.own.execution.executions import Options
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.database import FILE, Database
from pallas_gateway.tenants import Tenants
from pallas_service.http.disconnect import attended
from pallas_service.sqlite_file import CannotStore
from tests.gateway.door import OWN, PHONE, UI, Door, opened
from tests.gateway.own.execution.test_executions import FLEET, execute
from tests.gateway.own.execution.test_graphs import NOBODY, SUM, Pool, failure, graph, statuses, task, value_of

PLAN = (task("a", "double", {"value": 1}), task("b", "hang", depends_on=["a"]), SUM[2])
"""`a`, then `b` beside `c`; `b` hangs until the pool lets it answer."""


class Patient(Pool):
    """A pool whose `hang` answers once it is `released`."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def hold(self, ctx: Any) -> None:
        self.waiting.set()
        await attended(ctx.request, self.released.wait())

    def count(self, function: str) -> int:
        return [name for name, _, _ in self.calls].count(function)


@pytest.fixture
async def pool() -> Patient:
    return Patient()


@asynccontextmanager
async def gateway(pool: Pool | None, folder: Path, **more: Any) -> AsyncIterator[tuple[Door, Database]]:
    """Yield a gateway before `pool`, or before nobody, with its state in `folder`."""
    database = Database(folder / FILE)
    limits = {"tenants": Tenants({"desk": Tenant()})} | more
    try:
        async with (
            asyncio.timeout(120),
            AsyncExitStack() as stack,
        ):
            app = NOBODY if pool is None else await stack.enter_async_context(pool.app())
            around = {"fleet": FLEET, "options": Options(SqliteJournal(database))} | limits
            yield await stack.enter_async_context(opened({"news-fetcher": app}, **around)), database
    finally:
        database.close()


async def rows(database: Database, table: str) -> int:
    return await database.run(lambda connection: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def until_kept(database: Database, tasks: set[str]) -> None:
    """Wait until the outcomes of `tasks`, and no others, are on disk."""
    while True:
        kept = await database.run(lambda connection: connection.execute("SELECT task FROM steps").fetchall())
        if {task for (task,) in kept} == tasks:
            return
        await asyncio.sleep(0.01)


async def test_a_gateway_that_is_started_again_runs_only_what_was_under_way(pool: Patient, tmp_path: Path) -> None:
    async with gateway(pool, tmp_path) as (door, database):
        asking = asyncio.create_task(door.web.post("/mcp", json=graph(*PLAN)))
        await pool.waiting.wait()
        await until_kept(database, {"a", "c"})
        asking.cancel()
    before = list(pool.calls)
    pool.released.set()
    async with gateway(pool, tmp_path) as (door, database):
        answer = await execute(door, graph(*PLAN))
        assert statuses(answer["result"]["tasks"]) == dict.fromkeys("abc", "success")
        assert answer["result"]["tasks"]["c"]["result"] == {"value": 4}
        assert pool.calls[len(before) :] == [("hang", {}, "dag.b")]
        assert await rows(database, "steps") == 0


async def test_a_graph_goes_on_at_the_start_without_anybody_who_asks(pool: Patient, tmp_path: Path) -> None:
    async with gateway(pool, tmp_path) as (door, _):
        asking = asyncio.create_task(door.web.post("/mcp", json=graph(*PLAN)))
        await pool.waiting.wait()
        asking.cancel()
    pool.released.set()
    async with gateway(pool, tmp_path) as (_, database):
        while await rows(database, "graphs WHERE state = 'running'"):
            await asyncio.sleep(0.01)
        assert pool.count("hang") == 2


async def test_a_graph_that_cannot_be_read_holds_up_no_other(pool: Patient, tmp_path: Path) -> None:
    plans = [graph(*PLAN), graph(*PLAN)]
    plans[1]["params"]["meta"]["task_id"] = "other"
    async with gateway(pool, tmp_path) as (door, database):
        for plan in plans:
            asking = asyncio.create_task(door.web.post("/mcp", json=plan))
            while await rows(database, "steps") < 2 * (1 + plans.index(plan)):
                await asyncio.sleep(0.01)
            asking.cancel()
        first = "UPDATE steps SET outcome = '{}' WHERE graph = (SELECT graph FROM steps ORDER BY rowid LIMIT 1)"
        await database.run(lambda connection: connection.execute(first))
    pool.released.set()
    async with gateway(pool, tmp_path) as (door, database):
        while await rows(database, "graphs WHERE state = 'running'") > 1:
            await asyncio.sleep(0.01)
        assert "result" in await execute(door, plans[1])
        for _ in range(2):
            assert (await failure(door, plans[0]))[1]["reason"] == "failed"


async def test_who_hangs_up_does_not_end_it_and_may_ask_for_the_answer(pool: Patient, tmp_path: Path) -> None:
    async with gateway(pool, tmp_path) as (door, _):
        asking = asyncio.create_task(door.web.post("/mcp", json=graph(*PLAN)))
        await pool.waiting.wait()
        asking.cancel()
        again = asyncio.create_task(execute(door, graph(*PLAN, timestamp="2026-11-23T19:00:00Z")))
        checks = 0
        while checks < 2:  # of the one that is gone, and of the one that came after it
            door.noted.changed.clear()
            checks = sum(record.call.name == "" for record in door.noted.ended)
            if checks < 2:
                await door.noted.changed.wait()
        pool.released.set()
        assert statuses((await again)["result"]["tasks"]) == dict.fromkeys("abc", "success")
        assert len(pool.calls) == 3


async def test_the_same_graph_has_the_same_answer_and_runs_once(pool: Patient, tmp_path: Path) -> None:
    async with gateway(pool, tmp_path) as (door, _):
        answers = await asyncio.gather(*(execute(door, graph(*SUM)) for _ in range(5)))
        assert answers == [answers[0]] * 5
        assert len(pool.calls) == 4
    async with gateway(None, tmp_path) as (door, _):  # nobody is asked any more
        assert await execute(door, graph(*SUM)) == answers[0]
        assert (await execute(door, graph(*SUM) | {"jsonrpc": "2.0", "id": 9}))["id"] == 9
        code, data = await failure(door, graph(*SUM[:2]))
        assert (code, data["field"]) == (-32602, "meta.task_id")


async def test_nothing_is_kept_of_a_graph_that_cannot_be_run(pool: Patient, tmp_path: Path) -> None:
    async with gateway(pool, tmp_path) as (door, database):
        assert (await failure(door, graph(task("a", "triple"))))[0] == -32601
        assert await rows(database, "graphs") == 0
        assert "result" in await execute(door, graph(task("a", "add", {"values": [1]})))


async def test_callers_have_ids_of_their_own(pool: Patient, tmp_path: Path) -> None:
    tenants = Tenants({"desk": Tenant(callers=["ui", "phone"])})
    async with gateway(pool, tmp_path, tokens={"ui": UI, "phone": PHONE}, own=OWN, tenants=tenants) as (door, _):
        for token, value in ((UI, 1), (PHONE, 2)):
            heads = {"authorization": f"Bearer {token}"}
            body = graph(task("a", "double", {"value": value}))
            reply = await door.web.post("/mcp", json=body, headers=heads)
            assert reply.json()["result"]["tasks"]["a"]["result"] == {"value": 2 * value}


async def test_a_graph_is_resumed_as_its_caller_alone(pool: Patient, tmp_path: Path) -> None:
    tokens = {"ui": UI}
    heads = {"authorization": f"Bearer {UI}"}
    around: dict[str, Any] = {"tokens": tokens, "own": OWN}
    async with gateway(pool, tmp_path, **around, tenants=Tenants({"desk": Tenant(callers=["ui"])})) as (door, _):
        asking = asyncio.create_task(door.web.post("/mcp", json=graph(*PLAN), headers=heads))
        await pool.waiting.wait()
        asking.cancel()
    pool.released.set()
    moved = Tenants({"desk": Tenant(callers=["phone"])})  # the caller is in it no more
    async with gateway(pool, tmp_path, **around, tenants=moved) as (door, database):
        while await rows(database, "graphs WHERE state = 'running'"):
            await asyncio.sleep(0.01)
        assert pool.count("hang") == 1


async def test_a_graph_that_waits_for_a_confirmation_goes_on_where_it_stood(pool: Patient, tmp_path: Path) -> None:
    confirm = [{"agent": "news_fetcher", "tools": ["add"], "by": ["phone"]}]
    policy = Policy(Gateway.model_validate({"agents": ["news_fetcher"], "confirm": confirm}))
    rows_of = Confirmations(Database(tmp_path / "confirmations.db"))
    tenants = Tenants({"desk": Tenant(callers=["ui"])})
    around: dict[str, Any] = {"tokens": {"ui": UI, "phone": PHONE}, "own": OWN, "tenants": tenants, "policy": policy}
    async with gateway(pool, tmp_path, **around, gatekeeper=Gatekeeper(rows_of, nothing)) as (door, _):
        heads = {"authorization": f"Bearer {UI}"}
        body = graph(SUM[0], task("d", "add", {"values": [value_of("a")]}))
        refused = (await door.web.post("/mcp", json=body, headers=heads)).json()["error"]["data"]
        assert (refused["reason"], refused["task_id"]) == ("confirmation_required", "d")
        assert await rows_of.decide(refused["tasks"]["d"]["error"]["data"]["confirmation"], "phone", "approved")
        answer = (await door.web.post("/mcp", json=body, headers=heads)).json()
        assert answer["result"]["tasks"]["d"]["result"] == {"value": 2}
        assert (pool.count("double"), pool.count("add")) == (1, 1)
    rows_of._database.close()


async def test_what_cannot_be_kept_is_not_run(pool: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(work: Any) -> None:
        raise CannotStore("the disk is full")

    async with gateway(pool, tmp_path) as (door, database):
        with monkeypatch.context() as broken:
            broken.setattr(database, "run", full)
            code, data = await failure(door, graph(*SUM))
            assert (code, data["reason"], pool.calls) == (-32603, "not_stored", [])
        assert "result" in await execute(door, graph(*SUM))


async def test_a_graph_whose_outcome_cannot_be_kept_goes_on_when_it_is_asked_for_again(
    pool: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(self: Any, id_: str, name: str, outcome: str) -> None:
        raise CannotStore("the disk is full")

    async with gateway(pool, tmp_path) as (door, _):
        with monkeypatch.context() as broken:
            broken.setattr(SqliteJournal, "step", full)
            assert (await failure(door, graph(*SUM)))[1]["reason"] == "not_stored"
        assert (await execute(door, graph(*SUM)))["meta"]["status"] == "success"
        assert pool.count("add") == 1


async def test_a_graph_that_ends_the_gateway_again_and_again_is_given_up(
    pool: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_STARTS", 1)
    async with gateway(pool, tmp_path) as (door, _):
        asking = asyncio.create_task(door.web.post("/mcp", json=graph(*PLAN)))
        await pool.waiting.wait()
        asking.cancel()
    async with gateway(pool, tmp_path) as (door, database):
        while await rows(database, "graphs WHERE state = 'running'"):
            await asyncio.sleep(0.01)
        code, data = await failure(door, graph(*PLAN))
        assert (code, data["reason"], pool.count("hang")) == (-32001, "interrupted", 1)


async def test_after_a_restart_an_agent_may_come_up_later(pool: Patient, tmp_path: Path) -> None:
    async with gateway(pool, tmp_path) as (door, _):
        asking = asyncio.create_task(door.web.post("/mcp", json=graph(*PLAN)))
        await pool.waiting.wait()
        asking.cancel()
    pool.released.set()
    async with gateway(None, tmp_path) as (door, _):
        records = await door.noted.until(2)  # of the same task, which is none of its retries
        assert {record.outcome for record in records} == {"unreachable"}
    async with gateway(pool, tmp_path) as (door, _):
        assert statuses((await execute(door, graph(*PLAN)))["result"]["tasks"]) == dict.fromkeys("abc", "success")

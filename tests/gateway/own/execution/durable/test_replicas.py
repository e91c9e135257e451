"""Durable graphs of several gateways with one PostgreSQL, before a real MCP server of the SDK."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import mcp_types as t
import pytest

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.own.execution.durable.journal import Graph, Pace
from pallas_gateway.own.execution.durable.live import Live
from pallas_gateway.own.execution.durable.shared import LEASE, SharedJournal
from pallas_gateway.own.execution.executions import Options
from pallas_gateway.state.postgres import Postgres
from pallas_gateway.tenants import Tenants
from pallas_service.http.disconnect import attended
from tests.gateway.door import Door, opened
from tests.gateway.own.execution.test_executions import ENVELOPE, FLEET, execute
from tests.gateway.own.execution.test_graphs import SUM, Pool, failure, graph, statuses, task
from tests.gateway.state import stores
from tests.gateway.state.stores import LIMIT, Server
from tests.gateway.test_serve import started
from tests.served import served

PLAN = (task("a", "double", {"value": 1}), task("b", "hang", depends_on=["a"]), SUM[2])
"""`a`, then `b` beside `c`; `b` hangs until the pool lets that call of it answer."""
SLOW = Pace(renew=3600, follow=0.01, resume=0.01)
"""Of gateways that say nothing of what they run for so long that it is over for the others."""


class Gated(Pool):
    """A pool in which each call of `hang` answers with its number, once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[asyncio.Event] = []
        self.changed = asyncio.Condition()

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        if params.name != "hang":
            return await super().call(ctx, params)
        self.calls.append(("hang", {}, ctx.meta["io.pallas-kit/task"]))
        async with self.changed:
            self.gates.append(gate := asyncio.Event())
            number = len(self.gates)
            self.changed.notify_all()
        await attended(ctx.request, gate.wait())
        return t.CallToolResult(content=[], structured_content={"value": number})

    async def until_hanging(self, count: int) -> None:
        async with asyncio.timeout(LIMIT), self.changed:
            await self.changed.wait_for(lambda: len(self.gates) >= count)


class Watched(SharedJournal):
    """One that tells when a graph must wait, since another replica may run it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waits = asyncio.Event()

    def holds(self, id_: str) -> bool:
        held = super().holds(id_)
        if not held:
            self.waits.set()
        return held


class Replicas:
    """Gateways before one pool with one database, whose clock is `now`."""

    def __init__(self, pool: Gated, url: str, name: str) -> None:
        self._pool = pool
        self._url = url
        self._name = name
        self._stack = AsyncExitStack()
        self._agent = ""
        self.now = 1000.0
        self.own = 0.0
        """The clock of each gateway's machine."""
        self.journals: list[Watched] = []
        self.store = Postgres(url, name, seconds=LIMIT)

    async def __aenter__(self) -> None:
        await self._stack.__aenter__()
        self._stack.push_async_callback(self.store.close)
        web = await self._stack.enter_async_context(served(await self._stack.enter_async_context(self._pool.app())))
        self._agent = f"{web.base_url}/mcp"

    async def __aexit__(self, *about: Any) -> None:
        await self._stack.__aexit__(*about)

    async def open(self, pace: Pace = SLOW, stack: AsyncExitStack | None = None) -> Door:
        stack = stack or self._stack
        store = Postgres(self._url, self._name, seconds=LIMIT)
        stack.push_async_callback(store.close)
        journal = Watched(store, clock=lambda: self.now, pace=pace, monotonic=lambda: self.own)
        self.journals.append(journal)
        options = Options(journal)
        tenants = Tenants({"desk": Tenant(requests="9999/minute", concurrent=1000)})
        door = opened({"news-fetcher": self._agent}, fleet=FLEET, tenants=tenants, options=options)
        opened_door = await stack.enter_async_context(door)
        opened_door.web.timeout = LIMIT
        return opened_door

    async def until(self, query: str, wanted: Any) -> None:
        """Wait until a query returns what is wanted."""
        text = query.replace("FROM ", f"FROM {self.store.schema}.")
        async with asyncio.timeout(LIMIT):
            while await self.store.run(lambda connection: connection.fetchval(text)) != wanted:
                await asyncio.sleep(0.01)

    async def until_kept(self, tasks: str) -> None:
        await self.until("SELECT string_agg(task, '' ORDER BY task) FROM steps", tasks)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with stores.postgres() as running:
        yield running


@pytest.fixture
async def pool() -> Gated:
    return Gated()


@pytest.fixture
async def replicas(pool: Gated, server: Server, request: pytest.FixtureRequest) -> Replicas:
    return Replicas(pool, stores.postgres_url(server), request.node.name)


@asynccontextmanager
async def asking(door: Door, body: dict[str, Any]) -> AsyncIterator[asyncio.Task[dict[str, Any]]]:
    sending = asyncio.create_task(execute(door, body))
    try:
        yield sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def followed(door: Door, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Yield what is told of a graph's progress, and its answer."""
    message = {**ENVELOPE, **body}
    message["params"]["_meta"] = {"progressToken": "p"}
    heads = {"accept": "application/json, text/event-stream"}
    async with door.web.stream("POST", "/mcp", json=message, headers=heads) as reply:
        async for line in reply.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


async def test_a_graph_that_is_sent_to_several_replicas_runs_once(replicas: Replicas, pool: Gated) -> None:
    async with replicas:
        doors = [await replicas.open() for _ in range(3)]
        answers = await asyncio.gather(*(execute(door, graph(*SUM)) for door in doors * 5))
        assert answers == [answers[0]] * 15
        assert answers[0]["result"]["tasks"]["d"]["result"] == {"value": 8}
        assert len(pool.calls) == 4
        for door in doors:
            assert (await failure(door, graph(*SUM[:2])))[1]["field"] == "meta.task_id"


async def test_who_waits_at_another_replica_hears_of_each_task_and_of_the_end(replicas: Replicas, pool: Gated) -> None:
    async with replicas:
        one, two = [await replicas.open() for _ in range(2)]
        async with asking(one, graph(*PLAN)) as first:
            await pool.until_hanging(1)
            events = []
            async for event in followed(two, graph(*PLAN)):
                events.append(event)
                if event.get("params", {}).get("progress") == 2:
                    pool.gates[0].set()
            assert {event["params"]["message"] for event in events[:2]} == {"a: success", "c: success"}
            assert [event["params"]["progress"] for event in events[:-1]] == list(range(1, len(events)))
            assert events[-1]["result"] == (await first)["result"]
            assert len(pool.calls) == 3


async def test_progress_goes_on_from_what_was_told_when_another_takes_over() -> None:
    live = Live(Graph("1", "desk", "d", graph(*PLAN)["params"], {}))
    told: list[tuple[float, str | None]] = []

    async def tell(done: float, total: float | None, text: str | None) -> None:
        told.append((done, text))

    waiting = asyncio.create_task(live.wait(tell))
    await asyncio.sleep(0)
    await live.tell({"a": "success"})
    await live.tell({"a": "success", "c": "error"})
    for number, text in enumerate(("a: success", "c: error", "b: success"), 1):  # as a run tells it from its beginning
        await live.progress(number, 3, text)
    live.succeed({})
    assert await waiting == {}
    assert told == [(1, "a: success"), (2, "c: error"), (3, "b: success")]


async def test_what_a_replica_has_lost_it_cannot_write_any_more(replicas: Replicas, pool: Gated) -> None:
    """The first is slow: another goes on with its graph, and the outcome of the first comes too late."""
    async with replicas:
        one, two = [await replicas.open() for _ in range(2)]
        async with asking(one, graph(*PLAN)) as first:
            await pool.until_hanging(1)
            await replicas.until_kept("ac")
            async with asking(two, graph(*PLAN)) as second:
                replicas.now += LEASE
                await pool.until_hanging(2)
                pool.gates[0].set()
                await one.noted.until(1 + 3)  # the check and three tasks, the last of which is that of the gate
                pool.gates[1].set()
                answers = [(await asked)["result"]["tasks"] for asked in (first, second)]
            assert [entries["b"]["result"] for entries in answers] == [{"value": 2}] * 2
            assert sorted(name for name, _, _ in pool.calls) == ["double", "double", "hang", "hang"]


async def test_a_replica_that_has_lost_a_graph_ends_what_it_runs_of_it(replicas: Replicas, pool: Gated) -> None:
    async with replicas:
        one = await replicas.open(Pace(renew=0.01, follow=0.01, resume=3600))
        async with asking(one, graph(*PLAN)) as first:
            await pool.until_hanging(1)
            await replicas.until_kept("ac")
            await replicas.store.run(  # as another does that takes it over
                lambda connection: connection.execute(
                    f"UPDATE {replicas.store.schema}.graphs SET run = run + 1, holder = 'x', lease = 0"
                )
            )
            records = await one.noted.until(1 + 3)
            assert [record.outcome for record in records if record.call.name == "hang"] != ["answered"]
            await replicas.open()  # and goes on with it
            await pool.until_hanging(2)
            pool.gates[1].set()
            assert (await first)["result"]["tasks"]["b"]["result"] == {"value": 2}


async def test_a_gateway_that_ends_says_so_at_once_and_another_goes_on(replicas: Replicas, pool: Gated) -> None:
    async with replicas:
        async with AsyncExitStack() as stack:
            one = await replicas.open(stack=stack)
            async with asking(one, graph(*PLAN)) as first:
                await pool.until_hanging(1)
                await replicas.until_kept("ac")
                assert one.tools is not None
                one.tools.end()
                error = (await first)["error"]
                assert (error["data"]["reason"], error["data"]["graph"]) == ("interrupted", "dag")
                assert "send it again with the task_id `dag`" in error["message"]
                assert (await failure(one, graph(*PLAN)))[1]["graph"] == "dag"  # and to who comes then
        two = await replicas.open()  # the time has not moved: nothing was waited for
        async with asking(two, graph(*PLAN)) as second:
            await pool.until_hanging(2)
            pool.gates[1].set()
            assert statuses((await second)["result"]["tasks"]) == dict.fromkeys("abc", "success")
            assert len(pool.calls) == 4


async def end_in_the_middle(one: Door, first: Awaitable[Any], replicas: Replicas, pool: Gated) -> None:
    """Have a gateway end while task `b` of `PLAN` is under way, and only then have `b` answered."""
    await pool.until_hanging(1)
    await replicas.until_kept("ac")
    assert one.tools is not None
    one.tools.end()
    assert "error" in await first
    pool.gates[0].set()


async def test_what_a_task_answers_while_its_gateway_ends_is_kept(replicas: Replicas, pool: Gated) -> None:
    async with replicas:
        async with AsyncExitStack() as stack:
            one = await replicas.open(stack=stack)
            async with asking(one, graph(*PLAN, task("d", "double", {"value": 2}, depends_on=["b"]))) as first:
                await end_in_the_middle(one, first, replicas, pool)
                await replicas.until_kept("abc")
        two = await replicas.open()
        answer = await execute(two, graph(*PLAN, task("d", "double", {"value": 2}, depends_on=["b"])))
        assert answer["result"]["tasks"]["d"]["result"] == {"value": 4}
        assert len(pool.gates) == 1


async def test_another_goes_on_while_a_gateway_still_ends(replicas: Replicas, pool: Gated) -> None:
    """That one waits for calls of others, and has nothing of this graph under way any more."""
    async with replicas:
        one, two = [await replicas.open() for _ in range(2)]
        plan = graph(*PLAN, task("d", "double", {"value": 2}, depends_on=["b"]))
        async with asking(one, plan) as first:
            await end_in_the_middle(one, first, replicas, pool)
            answer = await execute(two, plan)
            assert answer["result"]["tasks"]["d"]["result"] == {"value": 4}
            assert len(pool.gates) == 1
            await replicas.until("SELECT starts FROM graphs", 1)  # the one that ends was no failure


async def test_nothing_is_begun_while_another_may_have_the_graph(replicas: Replicas, pool: Gated) -> None:
    """Its gateway has not renewed it for so long that it may be another's, by its own clock."""
    async with replicas:
        one = await replicas.open()
        async with asking(one, graph(task("a", "hang"), task("b", "double", {"value": 1}, depends_on=["a"]))) as asked:
            await pool.until_hanging(1)
            replicas.own += LEASE
            pool.gates[0].set()
            async with asyncio.timeout(LIMIT):
                await replicas.journals[0].waits.wait()
            assert [name for name, _, _ in pool.calls] == ["hang"]
            replicas.own -= LEASE  # as when it is renewed
            assert statuses((await asked)["result"]["tasks"]) == dict.fromkeys("ab", "success")


async def test_who_waits_for_a_graph_that_cannot_be_read_is_told(replicas: Replicas, pool: Gated) -> None:
    async with replicas:
        one, two = [await replicas.open() for _ in range(2)]
        async with asking(one, graph(*PLAN)), aclosing(followed(two, graph(*PLAN))) as second:
            await pool.until_hanging(1)  # which is run by the first
            assert "params" in await anext(second)  # it waits for the end now
            await replicas.until_kept("ac")
            for change in ("steps SET outcome = '{}'", "graphs SET lease = 0"):
                text = f"UPDATE {replicas.store.schema}.{change}"
                await replicas.store.run(lambda connection, text=text: connection.execute(text))
            told = [event async for event in second]
            assert told[-1]["error"]["data"]["reason"] == "failed"


async def test_without_its_store_nothing_is_begun_and_who_waits_is_told(
    replicas: Replicas, pool: Gated, server: Server
) -> None:
    async with replicas:
        one, two = [await replicas.open() for _ in range(2)]
        other = graph(*SUM)
        other["params"]["meta"]["task_id"] = "other"
        async with asking(one, graph(*PLAN)) as first:
            await pool.until_hanging(1)
            await replicas.until_kept("ac")
            async with aclosing(followed(two, graph(*PLAN))) as second:
                assert "params" in await anext(second)  # it waits for the end now
                server.stop()
                try:
                    told = [event async for event in second]
                    assert told[-1]["error"]["data"]["reason"] == "not_stored"
                    assert (await failure(two, other))[1]["reason"] == "not_stored"
                    pool.gates[0].set()
                    assert (await first)["error"]["data"]["reason"] == "not_stored"
                finally:
                    server.start()
        async with asyncio.timeout(LIMIT):
            while "error" in (answer := await execute(two, other)):
                assert answer["error"]["data"]["reason"] == "not_stored"
                await asyncio.sleep(0.05)
        assert [name for name, _, _ in pool.calls].count("add") == 1


@pytest.mark.slow
@pytest.mark.valkey
async def test_another_process_goes_on_with_the_graphs_of_one_that_was_killed(
    pool: Gated, server: Server, tmp_path: Path
) -> None:
    """That other process is told to stop then, while it runs another graph, and says so at once."""
    store = Postgres(stores.postgres_url(server), "killed", seconds=LIMIT)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        agent = await stack.enter_async_context(served(await stack.enter_async_context(pool.app())))
        valkey = stack.enter_context(stores.valkey())
        (tmp_path / "postgres.url").write_text(stores.postgres_url(server))
        (tmp_path / "valkey.url").write_text(stores.valkey_url(valkey))
        (tmp_path / "agents.yaml").write_text(
            "name: killed\n"
            "gateway: {agents: [news_fetcher], replicas: 2, tenants: {desk: {}}, tasks: {durable: true},"
            " store: {url: {file: postgres.url}}, counters: {url: {file: valkey.url}}}\n"
            f"agents: {{news_fetcher: {{card: a.md, port: {agent.base_url.port}}}}}\n"
        )
        process, one = stack.enter_context(started(tmp_path))
        stopped, two = stack.enter_context(started(tmp_path))
        web = await stack.enter_async_context(httpx.AsyncClient(timeout=LIMIT))
        first = asyncio.create_task(web.post(f"{one}/mcp", json=graph(*PLAN)))
        await pool.until_hanging(1)
        async with asyncio.timeout(LIMIT):
            count = f"SELECT count(*) FROM {store.schema}.steps"
            while await store.run(lambda connection: connection.fetchval(count)) < 2:
                await asyncio.sleep(0.02)
        process.kill()
        with suppress(httpx.HTTPError):
            await first
        # what the dead one had is over, without the wait for it
        await store.run(lambda connection: connection.execute(f"UPDATE {store.schema}.graphs SET lease = 0"))
        await pool.until_hanging(2)  # nobody asked
        pool.gates[1].set()
        tasks = (await web.post(f"{two}/mcp", json=graph(*PLAN))).json()["result"]["tasks"]
        assert tasks["b"]["result"] == {"value": 2}
        assert sorted(name for name, _, _ in pool.calls) == ["double", "double", "hang", "hang"]
        third = graph(*PLAN)
        third["params"]["meta"]["task_id"] = "third"
        last = asyncio.create_task(web.post(f"{two}/mcp", json=third))
        await pool.until_hanging(3)
        stopped.send_signal(signal.SIGTERM)
        data = (await last).json()["error"]["data"]
        assert (data["reason"], data["graph"]) == ("interrupted", "third")
        pool.gates[2].set()  # what is under way is waited for
        assert await asyncio.to_thread(stopped.wait, LIMIT) == 0

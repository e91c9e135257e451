"""Limits that replicas count together in a real Valkey: exact over all of them, away, and back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.state import counters
from pallas_gateway.state.counters import Counters
from pallas_gateway.tenants import WINDOW, Exceeded, Tenants
from pallas_service.http.shutdown import background
from tests.gateway.state.stores import LIMIT, Server, valkey, valkey_url

pytestmark = pytest.mark.valkey
DAY = 86_400.0
"""A window, and a lease, that no test outlasts, however busy the machine."""


@pytest.fixture(autouse=True)
def lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "LEASE", DAY)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with valkey() as running:
        yield running


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


class Replica:
    """The tenants of one gateway."""

    def __init__(
        self, server: Server, fleet: str, tenant: Tenant, window: float = DAY, clock: Callable[[], float] | None = None
    ) -> None:
        self.counters = Counters(valkey_url(server), fleet, seconds=LIMIT, window=window, clock=clock)
        # by its own count time stands still: that of a machine goes on while the test does not
        self.tenants = Tenants({"acme": tenant, "other": tenant}, lambda: 0.0, shared=self.counters)

    @asynccontextmanager
    async def call(self, tenant: str = "acme") -> AsyncIterator[None]:
        allowance = self.tenants.named(tenant)
        assert allowance
        async with self.tenants.using(allowance):
            yield

    async def passes(self, tenant: str = "acme") -> str:
        """Make a call, and return why it does not pass."""
        try:
            async with self.call(tenant):
                return ""
        except Exceeded as error:
            return error.reason


@asynccontextmanager
async def replicas(count: int, *about: object, **more: object) -> AsyncIterator[list[Replica]]:
    members = [Replica(*about, **more) for _ in range(count)]  # type: ignore[arg-type]
    try:
        yield members
    finally:
        for member in members:
            await member.counters.close()


async def test_exactly_a_hundred_of_a_thousand_calls_pass_over_three_replicas(server: Server, fleet: str) -> None:
    async with replicas(3, server, fleet, Tenant(concurrent=1000)) as three:
        reasons = await asyncio.gather(*(three[index % 3].passes() for index in range(1000)))
        assert Counter(reasons) == {"": 100, "rate": 900}
        assert await three[0].passes("other") == ""  # nobody uses up what is another's
        assert [replica.counters.problem for replica in three] == [""] * 3


async def test_the_window_moves(server: Server, fleet: str) -> None:
    now = [1000.0]
    tenant = Tenant(requests="3/minute")
    async with replicas(2, server, fleet, tenant, window=WINDOW, clock=lambda: now[0]) as (one, two):
        for replica in (one, two):
            for _ in range(2):  # few also in the own window of a replica, which does not move
                await replica.passes()
                now[0] += 10
        with pytest.raises(Exceeded, match="`acme` may make 3 requests a minute") as refused:
            async with one.call():
                pass
        assert refused.value.retry_after == 20  # the first was 40 seconds ago
        now[0] += 20
        assert await two.passes() == ""
        assert await two.passes() == "rate"


async def test_what_is_under_way_counts_at_all_replicas(server: Server, fleet: str) -> None:
    async with replicas(2, server, fleet, Tenant(concurrent=2)) as (one, two):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(one.call())
            await stack.enter_async_context(two.call())
            assert [await one.passes(), await two.passes()] == ["concurrency"] * 2
        assert [await one.passes(), await two.passes()] == ["", ""]


async def test_who_is_refused_is_not_counted(server: Server, fleet: str) -> None:
    async with replicas(2, server, fleet, Tenant(requests="4/minute", concurrent=1)) as (one, two):
        async with one.call():
            assert [await two.passes() for _ in range(10)] == ["concurrency"] * 10
        assert [await two.passes() for _ in range(4)] == ["", "", "", "rate"]


async def test_without_the_counters_each_replica_counts_for_itself_and_says_so(server: Server, fleet: str) -> None:
    async with replicas(2, server, fleet, Tenant(requests="3/minute", concurrent=1)) as (one, two):
        async with one.call():  # it ends while nobody is told of it
            server.stop()
            try:
                assert await two.passes() == ""
                assert two.counters.problem.startswith("each replica counts its limits for itself: Valkey: ")
            except BaseException:
                server.start()
                raise
        try:
            assert [await one.passes() for _ in range(3)] == ["", "", "rate"]
            assert [await two.passes() for _ in range(3)] == ["", "", "rate"]
        finally:
            server.start()
        async with one.call("other"), background(one.counters.watch(), two.counters.watch()):
            async with asyncio.timeout(LIMIT):
                while one.counters.problem or two.counters.problem:
                    await asyncio.sleep(0.02)
            # what has been under way all along is known there now
            assert await two.passes("other") == "concurrency"


async def test_a_replica_that_died_holds_nothing_for_long(server: Server, fleet: str) -> None:
    now = [1000.0]
    tenant = Tenant(concurrent=1)
    async with replicas(2, server, fleet, tenant, clock=lambda: now[0]) as (one, two):
        died = one.call()
        await died.__aenter__()
        assert await two.passes() == "concurrency"
        now[0] += DAY + 1
        assert await two.passes() == ""
        await died.__aexit__(None, None, None)


async def test_what_ends_while_it_is_renewed_is_over(
    server: Server, fleet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replicas(2, server, fleet, Tenant(concurrent=1)) as (one, two):
        ending = one.call()
        await ending.__aenter__()
        await one.counters.renew()
        assert await two.passes() == "concurrency"
        renew = one.counters._renew

        async def renewed(**about: object) -> None:
            await ending.__aexit__(None, None, None)
            await two.passes("other")
            await renew(**about)

        monkeypatch.setattr(one.counters, "_renew", renewed)
        await one.counters.renew()
        assert await two.passes() == ""


async def test_what_is_refused_while_all_is_renewed_holds_nothing(
    server: Server, fleet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replicas(2, server, fleet, Tenant(concurrent=1)) as (one, two):
        take = one.counters._take

        async def taken(**about: object) -> object:
            await one.counters.renew()
            return await take(**about)

        monkeypatch.setattr(one.counters, "_take", taken)
        async with two.call():
            assert await one.passes() == "concurrency"
        assert [await one.passes(), await two.passes()] == ["", ""]


async def test_an_answer_that_is_none_of_valkey_is_trouble_of_the_counters_and_of_no_call() -> None:
    """What the client raises for it is none of its own errors."""

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.read(1 << 16):
                writer.write(b":no number\r\n")
        writer.close()

    async with await asyncio.start_server(nonsense, "127.0.0.1") as there:
        url = f"redis://127.0.0.1:{there.sockets[0].getsockname()[1]}"
        counted = Counters(url, "nonsense", seconds=1.0)
        tenants = Tenants({"acme": Tenant(concurrent=1)}, lambda: 0.0, shared=counted)
        allowance = tenants.named("acme")
        assert allowance
        async with tenants.using(allowance):
            pass
        assert counted.problem.startswith("each replica counts its limits for itself: Valkey: ")
        await counted.close()

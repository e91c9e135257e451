"""Time that was not the registry's: measured, and not held against anybody."""

from __future__ import annotations

import asyncio
import socket
import time as clock
from collections.abc import Callable

import pytest
import uvloop

from pallas_registry.discovery import dns
from pallas_registry.discovery.dns import DnsDiscovery
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.probing.stall_clock import PERIOD, STALLS, TOLERANCE, StallClock
from pallas_registry.registration.reach import UrlDiscovery
from pallas_service.http.reach import Reach
from tests.registry.fake_fleet import states
from tests.registry.registration_client import admit, beat, opened, register


def stopped(seconds: float) -> None:
    """The fault: the loop's own thread sleeps, so nothing else runs."""
    clock.sleep(seconds)


def idle() -> float:
    return 0.0


async def test_a_pulse_that_is_overdue_stops_its_clock_at_once(time) -> None:
    stall_clock = StallClock(time.clock, idle)
    time.seconds = 100.0
    assert (stall_clock.lost, stall_clock.clock()) == (0.0, 100.0), "before the start nothing is missed"
    stall_clock.beat()
    time.seconds += PERIOD + TOLERANCE
    assert (stall_clock.lost, stall_clock.clock()) == pytest.approx((0.0, 100 + PERIOD + TOLERANCE))
    time.seconds += 20
    assert (stall_clock.lost, stall_clock.clock()) == pytest.approx((20.0, 100 + PERIOD + TOLERANCE))
    stall_clock.beat()
    time.seconds += 0.1
    assert (stall_clock.lost, stall_clock.clock()) == pytest.approx((20.0, 100 + PERIOD + TOLERANCE + 0.1))


@pytest.mark.parametrize(("worked", "lost"), [(0.1, 9.7), (4.0, 5.95), (9.98, 0.0), (20.0, 0.0)])
async def test_time_with_a_processor_is_not_lost(time, worked: float, lost: float) -> None:
    used = 7.0
    stall_clock = StallClock(time.clock, lambda: used)
    stall_clock.beat()
    time.seconds, used = 10.0, used + worked
    assert (stall_clock.lost, stall_clock.forgiven(0.0)) == pytest.approx((lost, lost))
    stall_clock.beat()
    assert (stall_clock.lost, stall_clock.forgiven(0.0)) == pytest.approx((lost, lost))


async def test_only_the_longest_stalls_are_forgiven(time) -> None:
    stall_clock = StallClock(time.clock, idle)
    stall_clock.beat()
    for seconds in (5, 1, 7, 3):
        time.seconds += seconds + PERIOD + TOLERANCE
        stall_clock.beat()
    assert stall_clock.lost == pytest.approx(16)
    assert stall_clock.forgiven(0.0) == pytest.approx(12)
    assert stall_clock.forgiven(6.0) == pytest.approx(10)
    time.seconds += 4 + PERIOD + TOLERANCE
    assert stall_clock.forgiven(0.0) == pytest.approx(12)
    assert stall_clock.forgiven(10.0) == pytest.approx(4 + 7 - 3.1)
    assert stall_clock.forgiven(time.seconds - 1) == pytest.approx(1), "never more than has passed"


async def test_it_beats_by_itself() -> None:
    stall_clock = StallClock()
    stall_clock.start()
    for _ in range(3):
        before = stall_clock.lost
        stopped(PERIOD + TOLERANCE + 0.2)
        await asyncio.sleep(2 * PERIOD)
        assert stall_clock.lost >= before + 0.2
    began = stall_clock.clock()
    async with asyncio.timeout(60):
        while stall_clock.clock() < began + 1:
            await asyncio.sleep(PERIOD)


async def test_a_deadline_waits_for_a_loop_that_did_not_run() -> None:
    stall_clock = StallClock()
    stall_clock.start()
    async with stall_clock.timeout(0.5):
        for _ in range(STALLS):
            stopped(0.9)
            await asyncio.sleep(0.01)


def busy(seconds: float) -> None:
    until = clock.monotonic() + seconds
    while clock.monotonic() < until:
        pass


@pytest.mark.parametrize("block", [busy, stopped])
async def test_a_deadline_passes_however_often_the_loop_is_blocked(block: Callable[[float], None]) -> None:
    stall_clock, turns = StallClock(), 0
    stall_clock.start()

    async def blocked() -> None:
        nonlocal turns
        while turns < 30:
            turns += 1
            block(0.8)
            await asyncio.sleep(0.01)

    with pytest.raises(TimeoutError):
        async with stall_clock.timeout(2):
            await blocked()
    assert turns < 6


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_has_come_is_read_first(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """By a task that waits for another one: two turns of the loop after the bytes are there."""

    async def read() -> bytes:
        stall_clock = StallClock()
        stall_clock.start()
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            async with stall_clock.timeout(0.2):
                theirs.send(b"well")
                busy(1)
                return await asyncio.create_task(reader.readexactly(4))
        finally:
            writer.close()
            theirs.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(read()) == b"well"


async def test_a_deadline_is_one_where_the_loop_runs() -> None:
    stall_clock = StallClock()
    stall_clock.start()
    with pytest.raises(TimeoutError):
        async with stall_clock.timeout(0.05):
            await asyncio.Event().wait()
    async with stall_clock.timeout(60):
        pass


async def starved(_host: str) -> frozenset[str]:
    """An answer that is there in time, for a registry that is not."""
    stopped(3 * dns.TIMEOUT)
    await asyncio.sleep(0.01)
    return frozenset({"10.20.0.2"})


async def test_names_are_looked_up_by_its_deadline(monkeypatch) -> None:
    monkeypatch.setattr(dns, "TIMEOUT", 0.5)
    monkeypatch.setattr("pallas_registry.registration.reach.TIMEOUT", 0.5)
    stall_clock, found = StallClock(), {}
    stall_clock.start()
    await DnsDiscovery(starved, bound=stall_clock.timeout).sweep(["harper"], found.__setitem__)
    url = "http://agents.example.com/mcp"
    outside = UrlDiscovery(starved, bound=stall_clock.timeout)
    await outside.sweep({"guest": url}, Reach(["10.20.0.0/16"]), lambda agent, _, seen: found.update({agent: seen}))
    assert found == {
        "harper": Sighting((Endpoint("http://harper:8080/mcp", "10.20.0.2"),)),
        "guest": Sighting((Endpoint(url, "10.20.0.2"),)),
    }


@pytest.mark.usefixtures("no_threads")
async def test_who_was_not_listened_to_was_not_silent(folder, time) -> None:
    admit(folder)
    stall_clock = StallClock(time.clock, idle)
    async with opened(folder, time, stall_clock=stall_clock) as desk:
        await desk.ask(register())
        stall_clock.beat()
        time.seconds += 250  # four intervals and more, stopped
        await time.advance()
        assert states(desk.service)["feature-extractor"] == ("ok", "")
        text = (await desk.service.monitor.metrics.scrape(""))[0].decode()
        assert "\npallas_registry_lost_seconds_total 249.7\n" in text
        assert await desk.code(beat()) == (200, 0)


@pytest.mark.usefixtures("no_threads")
async def test_who_is_silent_is_seen_by_a_registry_that_has_little_time(folder, time) -> None:
    admit(folder)
    stall_clock = StallClock(time.clock, idle)
    async with opened(folder, time, stall_clock=stall_clock) as desk:
        await desk.ask(register())
        for _ in range(8):
            stall_clock.beat()
            time.seconds += 50  # eight times stopped, and nothing to be heard in between
        stall_clock.beat()
        await time.advance()
        assert states(desk.service)["feature-extractor"][0] == "error"

"""Time that was not the registry's: measured, and not held against anybody."""

from __future__ import annotations

import asyncio
import time as clock

import pytest

from pallas_registry import discovery
from pallas_registry.discovery import Dns, Endpoint, Sighting
from pallas_registry.pulse import PERIOD, TOLERANCE, Pulse
from pallas_registry.registration.reach import Outside, Reach

from .made_up import states
from .said import admit, beat, opened, register


def stopped(seconds: float) -> None:
    """The fault: the loop's own thread sleeps, so nothing else runs."""
    clock.sleep(seconds)


async def test_a_pulse_that_is_overdue_stops_its_clock_at_once(time) -> None:
    pulse = Pulse(time.clock)
    time.seconds = 100.0
    assert (pulse.lost, pulse.clock()) == (0.0, 100.0), "before the start nothing is missed"
    pulse.start()
    time.seconds += PERIOD + TOLERANCE
    assert (pulse.lost, pulse.clock()) == pytest.approx((0.0, 100 + PERIOD + TOLERANCE))
    time.seconds += 20
    assert (pulse.lost, pulse.clock()) == pytest.approx((20.0, 100 + PERIOD + TOLERANCE))
    pulse.start()
    time.seconds += 0.1
    assert (pulse.lost, pulse.clock()) == pytest.approx((20.0, 100 + PERIOD + TOLERANCE + 0.1))


async def test_it_beats_by_itself() -> None:
    pulse = Pulse()
    pulse.start()
    for _ in range(3):
        before = pulse.lost
        stopped(PERIOD + TOLERANCE + 0.2)
        await asyncio.sleep(2 * PERIOD)
        assert pulse.lost >= before + 0.2
    began = pulse.clock()
    async with asyncio.timeout(60):
        while pulse.clock() < began + 1:
            await asyncio.sleep(PERIOD)


async def test_a_deadline_waits_for_a_loop_that_did_not_run() -> None:
    pulse = Pulse()
    pulse.start()
    async with pulse.timeout(1):
        for _ in range(3):
            stopped(1.5)
            await asyncio.sleep(0.01)


async def test_a_deadline_is_one_where_the_loop_runs() -> None:
    pulse = Pulse()
    pulse.start()
    with pytest.raises(TimeoutError):
        async with pulse.timeout(0.05):
            await asyncio.Event().wait()
    async with pulse.timeout(60):
        pass


async def starved(_host: str) -> frozenset[str]:
    """An answer that is there in time, for a registry that is not."""
    stopped(3 * discovery.TIMEOUT)
    await asyncio.sleep(0.01)
    return frozenset({"10.20.0.2"})


async def test_names_are_looked_up_by_its_deadline(monkeypatch) -> None:
    monkeypatch.setattr(discovery, "TIMEOUT", 0.5)
    monkeypatch.setattr("pallas_registry.registration.reach.TIMEOUT", 0.5)
    pulse, found = Pulse(), {}
    pulse.start()
    await Dns(starved, bound=pulse.timeout).sweep(["harper"], found.__setitem__)
    url = "http://agents.example.com/mcp"
    outside = Outside(starved, bound=pulse.timeout)
    await outside.sweep({"guest": url}, Reach(["10.20.0.0/16"]), lambda agent, _, seen: found.update({agent: seen}))
    assert found == {
        "harper": Sighting((Endpoint("http://harper:8080/mcp", "10.20.0.2"),)),
        "guest": Sighting((Endpoint(url, "10.20.0.2"),)),
    }


@pytest.mark.usefixtures("no_threads")
async def test_who_was_not_listened_to_was_not_silent(folder, time) -> None:
    admit(folder)
    pulse = Pulse(time.clock)
    async with opened(folder, time, pulse=pulse) as desk:
        await desk.ask(register())
        pulse.start()
        time.seconds += 250  # four intervals and more, stopped
        await time.advance()
        assert states(desk.service)["feature-extractor"] == ("ok", "")
        text = (await desk.service.metrics.scrape(""))[0].decode()
        assert "\npallas_registry_lost_seconds_total 249.7\n" in text
        assert await desk.code(beat()) == (200, 0)

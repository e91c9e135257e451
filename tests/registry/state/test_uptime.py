"""Uptime: exact over a changing hour and day, bounded in memory, and honest about time of which nothing is known."""

from __future__ import annotations

import sys
import zlib

import pytest

from pallas_registry.state.uptime import DAY, HOUR, KINDS, NOTHING, Uptime, Window


class Clock:
    """Seconds since the epoch, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def uptime(clock: Clock) -> Uptime:
    return Uptime(clock=clock)


def test_an_agent_nobody_recorded_has_none(uptime: Uptime) -> None:
    assert uptime.of("harper") == NOTHING
    assert NOTHING.hour.share is None


def test_unknown_and_starting_time_does_not_count(uptime: Uptime, clock: Clock) -> None:
    uptime.record("harper", "unknown")
    clock.seconds += 100
    uptime.record("harper", "starting")
    clock.seconds += 100
    assert uptime.of("harper") == NOTHING
    uptime.record("harper", "ok")
    clock.seconds += 50
    assert uptime.of("harper").hour == Window(50, 50)


@pytest.mark.parametrize(("state", "up"), [("ok", 600), ("degraded", 600), ("unauthenticated", 600), ("error", 0)])
def test_an_agent_that_stays_as_it_is(uptime: Uptime, clock: Clock, state, up: int) -> None:
    uptime.record("harper", state)
    clock.seconds += 600
    assert uptime.of("harper").day == Window(up, 600)


def test_a_steady_agent_fills_the_windows_and_no_more(uptime: Uptime, clock: Clock) -> None:
    uptime.record("harper", "ok")
    clock.seconds += 3 * DAY
    assert (uptime.of("harper").hour, uptime.of("harper").day) == (Window(HOUR, HOUR), Window(DAY, DAY))


def test_each_second_down_counts_once(uptime: Uptime, clock: Clock) -> None:
    uptime.record("harper", "ok")
    clock.seconds += 1800
    uptime.record("harper", "error")
    clock.seconds += 12.5
    uptime.record("harper", "degraded")
    clock.seconds += 600
    assert uptime.of("harper").hour == Window(2400, 2412.5)
    clock.seconds += HOUR
    assert uptime.of("harper").hour.share == 1, "the trouble is over for an hour"
    assert uptime.of("harper").day == Window(6000, 6012.5)
    clock.seconds += DAY
    assert uptime.of("harper").day.share == 1


def test_a_short_outage_is_not_lost_between_two_buckets(uptime: Uptime, clock: Clock) -> None:
    uptime.record("harper", "ok")
    for _ in range(50):
        clock.seconds += 0.3
        uptime.record("harper", "error")
        clock.seconds += 0.1
        uptime.record("harper", "ok")
    window = uptime.of("harper").hour
    assert (window.known - window.up, window.known) == (pytest.approx(5, abs=0.1), pytest.approx(20, abs=0.1))


def test_buckets_end_with_the_one_of_now(uptime: Uptime, clock: Clock) -> None:
    clock.seconds -= clock.seconds % 900
    uptime.record("harper", "ok")
    clock.seconds += 900
    uptime.record("harper", "error")
    clock.seconds += 90
    minutes, quarters = uptime.buckets("harper")
    assert (len(minutes), len(quarters)) == (60, 96)
    assert minutes[-3:] == [(60, 0, 0), (0, 0, 60), (0, 0, 30)]
    assert quarters[-3:] == [(0, 0, 0), (900, 0, 0), (0, 0, 90)]
    assert len(KINDS) == len(minutes[0])


def test_buckets_of_an_agent_without_a_change(uptime: Uptime, clock: Clock) -> None:
    uptime.record("harper", "degraded")
    clock.seconds += 2 * DAY
    minutes, quarters = uptime.buckets("harper")
    assert minutes[:-1] == [(0, 60, 0)] * 59
    assert quarters[1:-1] == [(0, 900, 0)] * 94
    assert uptime.buckets("nobody")[0] == [(0, 0, 0)] * 60


def test_a_clock_that_leaps_over_everything_leaves_nothing_old(uptime: Uptime, clock: Clock) -> None:
    uptime.record("harper", "error")
    clock.seconds += 60
    uptime.record("harper", "unknown")
    clock.seconds += 5 * DAY
    assert uptime.of("harper") == NOTHING


def test_who_is_gone_is_forgotten(uptime: Uptime, clock: Clock) -> None:
    uptime.record("harper", "error")
    uptime.record("scout", "ok")
    clock.seconds += 60
    uptime.retain(["scout"])
    assert uptime.of("harper") == NOTHING
    assert uptime.document() == {"agents": {"scout": {"hour": {"up": 60, "known": 60}, "day": {"up": 60, "known": 60}}}}


def test_the_memory_of_an_agent_is_bounded(uptime: Uptime, clock: Clock) -> None:
    """The figures of docs/scale-registry.md: whatever happens, an agent costs less than 1.9 kB."""
    uptime.record("steady", "ok")
    for turn in range(3000):
        clock.seconds += 31
        uptime.record("restless", ("ok", "error", "degraded")[turn % 3])
    assert _bytes(uptime._tracks["steady"]) < 200
    assert _bytes(uptime._tracks["restless"]) < 1800
    clock.seconds += 2 * DAY
    uptime.of("restless")
    assert _bytes(uptime._tracks["restless"]) < 200, "an outage that nobody asks for any more costs nothing"


def _bytes(track) -> int:
    parts = [track, track.since, track.counted]
    for ring in track.rings or ():
        parts += [ring, ring.cells, ring.totals, ring.last]
    return sum(map(sys.getsizeof, parts))


def test_a_restart_loses_only_the_time_in_which_nothing_ran(uptime: Uptime, clock: Clock) -> None:
    uptime.record("changing", "ok")
    uptime.record("steady", "degraded")
    uptime.record("new", "unknown")
    clock.seconds += 600
    uptime.record("changing", "error")
    clock.seconds += 100
    records = uptime.records()
    assert set(records) == {"changing", "steady"}
    clock.seconds += 1000
    later = Uptime(clock=clock)
    assert later.restore(records) == []
    assert (later.of("changing").hour, later.of("steady").hour) == (Window(600, 700), Window(700, 700))
    later.record("changing", "ok")
    later.record("steady", "error")
    clock.seconds += 50
    assert (later.of("changing").day, later.of("steady").day) == (Window(650, 750), Window(700, 750))
    again = Uptime(clock=clock)
    again.restore(later.records())
    assert again.of("steady") == later.of("steady")
    clock.seconds += 2 * DAY
    assert again.of("steady") == NOTHING


@pytest.mark.parametrize("harm", ["short", "cut", "cells", "kind", "future", "bomb", "foreign"])
def test_a_record_that_makes_no_sense_is_named_and_left_out(uptime: Uptime, clock: Clock, harm: str) -> None:
    uptime.record("harper", "ok")
    clock.seconds += 60
    uptime.record("harper", "error")
    clock.seconds += 60
    record = uptime.records()["harper"]
    harmed = {
        "short": record[:9],
        "cut": record[:-9],
        "cells": record[:17] + zlib.compress(b"\xff" * 936),
        "kind": record[:16] + b"\x07" + record[17:],
        "bomb": record[:17] + zlib.compress(bytes(10_000_000)),
        "foreign": b"a text of somebody else's",
        "future": record,
    }
    if harm == "future":
        clock.seconds -= 3600
    assert Uptime(clock=clock).restore({"harper": harmed[harm]}) == ["harper"]


def test_a_clock_of_the_machine_that_was_wrong_for_days_costs_nothing_but_the_past(clock: Clock) -> None:
    early = Uptime(clock=clock)
    early.record("harper", "error")
    clock.seconds += 60
    records = early.records()
    clock.seconds += 400 * DAY
    later = Uptime(clock=clock)
    assert later.restore(records) == []
    later.record("harper", "ok")
    clock.seconds += 10
    assert later.of("harper").day == Window(10, 10)

"""How long a start waits for the first checks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pallas_agent_runtime.health.first_round import LONGEST, first_round
from pallas_contract.probe import probe

DEADLINE = 60.0


def events(*are_set: bool) -> list[asyncio.Event]:
    made = [asyncio.Event() for _ in are_set]
    for event, is_set in zip(made, are_set, strict=True):
        if is_set:
            event.set()
    return made


@pytest.mark.parametrize(
    ("checked", "stop"), [((True, True), False), ((False, True), True), ((), False)], ids=["checked", "stop", "nothing"]
)
async def test_it_ends_when_all_is_known_or_the_agent_is_to_stop(checked: Sequence[bool], stop: bool) -> None:
    async with asyncio.timeout(DEADLINE):
        await first_round(events(*checked), *events(stop), longest=1000)


async def test_it_waits_for_the_last_one() -> None:
    first, last, stop = events(True, False, False)
    waiting = asyncio.create_task(first_round([first, last], stop, longest=1000))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    last.set()
    async with asyncio.timeout(DEADLINE):
        await waiting


async def test_it_ends_when_somebody_hangs() -> None:
    async with asyncio.timeout(DEADLINE):
        await first_round(events(True, False), *events(False), longest=0.0)


def test_a_round_of_probes_fits_into_it() -> None:
    assert probe.TIMEOUT < LONGEST < probe.TIMEOUT + 0.5

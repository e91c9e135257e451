"""The first round of checks, before which an agent knows nothing of those it depends on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from pallas_contract.probe import probe

LONGEST = probe.TIMEOUT + probe.PAUSE
"""Seconds that a start waits for it: a round of probes, and a moment for its result to be written down."""


async def first_round(checked: Iterable[asyncio.Event], stop: asyncio.Event, longest: float = LONGEST) -> None:
    """Wait until all of `checked` are set, whatever was found; no longer than `longest` seconds, or until `stop`.

    A start that did not wait would say `degraded` and then `ok` to whoever looks, each time; one that waits for more
    than a round would let a provider that hangs hold back those that wait for this agent.
    """
    checks = [asyncio.create_task(event.wait()) for event in checked]
    waits: list[asyncio.Future[Any]] = [asyncio.gather(*checks), asyncio.create_task(stop.wait())]
    try:
        await asyncio.wait(waits, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

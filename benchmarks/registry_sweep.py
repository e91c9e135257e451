"""What agents that hang cost the others: a sweep of 200 fakes with 10 % frozen, and the catalogue's p99 meanwhile.

A sweep asks every agent once, as many at a time as the registry does, when it is known who is frozen: 1.0 is the
deadline of one probe. The catalogue is read from two registries with 200 agents each, all of them well in one and 10 %
frozen in the other. Debian: wrk.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from benchmarks.method import fleet, load
from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import SERVER, Effort, Sample, compare

AGENTS, FROZEN = 200, 20
INTERVAL = 5.0
SWEEP = """
import asyncio, json, sys, time, uvloop
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing.scheduler import Pace, Prober, Scheduler

async def main():
    port, well, frozen = json.load(sys.stdin)
    before = {Endpoint(f"http://{ip}:{port}/mcp", ip): Result(state, era="2026-07-28")
              for state, ips in (("ok", well), ("error", frozen)) for ip in ips}
    prober, found, done = Prober(), {}, asyncio.Event()

    def report(_, endpoint, result):
        found[endpoint] = result
        if len(found) == len(before):
            done.set()

    async with asyncio.TaskGroup() as group:
        scheduler = Scheduler(prober.check, report, before=lambda _, endpoint: before[endpoint],
                              spawn=group.create_task, pace=Pace(lambda: 3600.0, time.monotonic))
        began = time.monotonic()
        scheduler.follow("all", list(before))
        await done.wait()
        print(time.monotonic() - began)
        scheduler.retain([])
    assert all(found[endpoint].state == result.state for endpoint, result in before.items()), found

uvloop.run(main())
"""


def measure(effort: Effort) -> Iterator[Figure]:
    load.need("wrk")
    well = [fleet.address(number) for number in range(AGENTS)]
    some, frozen = well[:-FROZEN], [fleet.address(AGENTS + number) for number in range(FROZEN)]
    with ExitStack() as stack:
        port, _ = stack.enter_context(fleet.fakes(well, frozen))
        swept = compare(partial(_sweep, port, some, frozen), lambda: Sample(3.0), effort)
        yield ratio(f"sweep of {AGENTS}, {FROZEN} frozen / one timeout", swept, at_most(1.3), "s")
        healthy = stack.enter_context(fleet.registry(_where(well, port), INTERVAL))
        hanging = stack.enter_context(fleet.registry(_where([*some, *frozen], port), INTERVAL))
        healthy.settled(ok=AGENTS)
        hanging.settled(ok=AGENTS - FROZEN, error=FROZEN)
        slow, quick = (partial(_p99, f"{one.url}{fleet.CATALOGUE}", effort.seconds) for one in (hanging, healthy))
        what = f"p99 of the catalogue, {FROZEN} of {AGENTS} frozen / all well"
        yield ratio(what, compare(slow, quick, effort), at_most(1.2), "ms")


def _where(addresses: list[str], port: int) -> dict[str, str]:
    return {f"a{number}": f"{address}:{port}" for number, address in enumerate(addresses)}


def _sweep(port: int, well: list[str], frozen: list[str]) -> Sample:
    command = ["taskset", "-c", str(SERVER), sys.executable, "-c", SWEEP]
    asked = json.dumps([port, well, frozen])
    return Sample(float(subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout))


def _p99(url: str, seconds: float) -> Sample:
    return Sample(load.p99(url, max(seconds, 2.0)))

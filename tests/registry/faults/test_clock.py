"""Faults 16 and 22 in a time of the test's own: two minutes of flapping, and a wall clock that jumps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing.scheduler import Prober
from tests.registry.fake_fleet import Fake, running, states

pytestmark = pytest.mark.usefixtures("no_threads")

INTERVAL = 5.0


async def test_16_two_minutes_of_flapping_publish_one_change_per_interval_at_most(
    folder: Path, time, fake: Fake
) -> None:
    async def flap(target, **_: object) -> Result:
        # half a second off: probes begin at whole quarters, and an error needs half a second to be confirmed
        up = "harper" not in target.url or int(time.seconds + 0.5) % 2 == 0
        return Result("ok") if up else Result("error", Reason("ConnectionRefused", "connection refused"))

    fake.check = Prober(flap, sleep=time.sleep, clock=time.clock).check
    async with running(folder, time, fake, fake) as service:
        await time.advance(120)
        changes = [change for change in reversed(service.monitor.history.last(1000)) if change.agent == "harper"]
        at = [(change.at - changes[0].at).total_seconds() for change in changes]
        assert len(at) > 2, "or it did not flap"
        confirmed = 0.51  # an error is published after its confirmations, a recovery at once
        assert min(later - before for before, later in pairwise(at[1:])) >= INTERVAL - confirmed
        assert {change.agent for change in service.monitor.history.last(1000)} == {"harper", "tech_research"}
        assert states(service)["tech-research"] == ("ok", "")


@pytest.mark.parametrize("jump", [3600.0, -3600.0], ids=["forward", "back"])
async def test_22_a_wall_clock_that_jumps_moves_no_probe(folder: Path, time, fake: Fake, jump: float) -> None:
    at: dict[str, list[float]] = {}

    async def check(endpoint: Endpoint, _before: Result | None) -> Result:
        at.setdefault(endpoint.url, []).append(time.seconds)
        return Result("ok")

    fake.check = check
    async with running(folder, time, fake, fake) as service:
        await time.advance(30)
        time.jumped = jump
        await time.advance(30)
        for probes in at.values():
            gaps = {round(later - before, 6) for before, later in pairwise(probes[1:])}
            assert gaps == {INTERVAL}, "no burst, no gap"
        text = (await service.monitor.metrics.scrape(""))[0].decode()
        (age, *_) = [line for line in text.splitlines() if line.startswith("pallas_registry_last_probe_age")]
        assert 0 <= float(age.split()[-1]) <= INTERVAL
        assert service.monitor.recheck is not None
        before = len(at["http://harper/mcp"])
        await service.monitor.recheck("harper")
        assert len(at["http://harper/mcp"]) > before, "whoever asks is not told to wait an hour"

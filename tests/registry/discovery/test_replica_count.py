"""Replicas that DNS leaves out, as Kubernetes does with those that are not ready."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.replica_count import PATIENCE, ReplicaCount
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.state.status import Condition, judge
from tests.registry.fake_fleet import Fake, running, states

A, B, C = (Endpoint("http://harper:8080/mcp", f"10.0.0.{number}") for number in (1, 2, 3))
OK, REFUSED = Result("ok"), Result("error", Reason("ConnectionRefused", "connection refused"))
SHORT = Reason("ReplicaMissing", "2 of 3 replicas found")


@pytest.fixture
def count(time) -> ReplicaCount:
    return ReplicaCount({"harper": 3}.get, clock=time.clock)


async def test_fewer_than_wanted_are_told_after_the_time_of_a_start(count: ReplicaCount, time) -> None:
    two = Sighting((A, B))
    assert count.check("harper", two) == two
    await time.advance(PATIENCE - 1)
    assert count.check("harper", two) == two
    await time.advance(1)
    assert count.check("harper", two) == Sighting((A, B), missing=SHORT)


async def test_one_that_is_not_ready_counts_for_none_however_it_answers(time) -> None:
    """Callers do not reach it: Kubernetes sends them to those that are ready."""
    count = ReplicaCount(lambda _: 1, clock=time.clock)
    unready = Sighting((A,), ready=False)
    assert count.check("harper", unready) == unready
    await time.advance(PATIENCE)
    missing = Reason("ReplicaMissing", "0 of 1 replicas ready")
    assert count.check("harper", unready) == Sighting((A,), ready=False, missing=missing)
    assert count.check("harper", Sighting((A,))) == Sighting((A,))


async def test_all_of_them_for_a_moment_begin_the_time_again(count: ReplicaCount, time) -> None:
    count.check("harper", Sighting((A, B)))
    await time.advance(PATIENCE)
    assert count.check("harper", Sighting((A, B, C))) == Sighting((A, B, C))
    assert count.check("harper", Sighting((A, B))) == Sighting((A, B))


async def test_an_agent_that_left_the_file_comes_back_without_its_past(count: ReplicaCount, time) -> None:
    count.check("harper", Sighting((A, B)))
    await time.advance(PATIENCE)
    count.retain(["research"])
    assert count.check("harper", Sighting((A, B))) == Sighting((A, B))


@pytest.mark.parametrize(
    ("results", "condition"),
    [
        ((OK, OK), Condition("degraded", SHORT)),
        (
            (OK, REFUSED),
            Condition(
                "degraded",
                Reason(
                    "ReplicaUnavailable",
                    "1 of 2 replicas: 10.0.0.2: connection refused; 2 of 3 replicas found",
                    ("10.0.0.2",),
                ),
            ),
        ),
        (
            (REFUSED, REFUSED),
            Condition("error", Reason("ConnectionRefused", "connection refused; 2 of 3 replicas found")),
        ),
    ],
)
def test_what_is_missing_is_part_of_the_verdict(results: tuple[Result, Result], condition: Condition) -> None:
    sighting = Sighting((A, B), missing=SHORT)
    assert judge("harper", sighting, dict(zip((A, B), results, strict=True))) == condition


def pool(folder: Path, fake: Fake) -> None:
    """`harper` with three replicas in the file, two of which are found."""
    file = folder / "agents.yaml"
    file.write_text(file.read_text().replace("port: 8201,", "port: 8201, replicas: 3, instance_scope: request,"))
    fake.where["harper"] = (A, B)
    fake.answers |= {A: OK, B: OK, C: OK}


async def test_the_fleet_is_told_of_a_replica_that_is_not_found(no_threads, folder: Path, time, fake: Fake) -> None:
    pool(folder, fake)
    async with running(folder, time, fake, fake) as service:
        await time.advance(PATIENCE - 1)
        assert states(service)["harper"] == ("ok", "")
        await time.advance(6)
        assert states(service)["harper"] == ("degraded", SHORT.message)
        fake.where["harper"] = (A, B, C)
        await time.advance(5)
        assert states(service)["harper"] == ("ok", "")


@pytest.mark.parametrize(("numbers", "state"), [('{"harper": 3}', "degraded"), ('{"harper": 2}', "ok"), ("{}", "ok")])
async def test_what_the_chart_says_wins_over_the_file(
    no_threads, folder: Path, time, fake: Fake, numbers: str, state: str
) -> None:
    """Nothing is said of an agent whose number nobody knows; a new number counts without a restart."""
    pool(folder, fake)
    async with running(folder, time, fake, fake) as service:
        (folder / ".replicas.json").write_text(numbers)
        await time.advance(PATIENCE + 10)
        assert states(service)["harper"][0] == state


async def test_as_processes_there_is_one_of_each(no_threads, folder: Path, time, fake: Fake) -> None:
    pool(folder, fake)
    fake.answers = defaultdict(lambda: OK)
    async with running(folder, time, fake) as service:
        await time.advance(PATIENCE + 10)
        assert states(service)["harper"] == ("ok", "")

"""Faults of a fleet that runs: how soon its registry tells of them, and how soon of their end.

examples/02-pallas with the registry's own interval; each fault comes at a moment of its own within an interval.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pallas_testing.fleet import Fleet, start
from pallas_testing.fleet.events import Events
from pallas_testing.project.fleet_file import slug
from pallas_testing.targets.base import Order
from proof.results import Measure

EXAMPLE = Path(__file__).parents[1] / "examples" / "02-pallas"
INTERVAL = 5.0
PATIENCE = 300.0
"""Seconds to wait for a state before a fault counts as never noticed."""
LEAVES = ("tech_research", "engineering")
"""Agents that nobody but their callers needs, so that all others stay what they are."""
CALLERS: Mapping[str, tuple[str, ...]] = {"tech_research": ("research", "harper"), "engineering": ("harper",)}
"""Who may be told `degraded` for each of them."""
VERBS: Mapping[str, tuple[tuple[str, str, float], ...]] = {
    "processes": (("2", "pause", 11.0),),
    "compose": (("1", "kill", 6.0), ("2", "pause", 11.0), ("3", "remove", 6.0)),
    "cluster": (("2", "pause", 11.0),),
}
"""Target -> row, verb, bound in seconds. `pallas` starts a killed process again before the registry looks."""


def measure(target: str, count: int, seed: int) -> Iterator[Measure]:
    """Yield what `count` faults of each kind led to on a target."""
    chance = random.Random(seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        start.running(target, Order(EXAMPLE / "agents.yaml", Path(folder)), {}) as running,
    ):
        for row, verb, bound in VERBS[target]:
            noticed, back, others = [], [], 0
            for _ in range(count):
                agent = chance.choice(LEAVES)
                time.sleep(chance.uniform(0, INTERVAL))  # the moment of the fault, not a wait for anything
                seconds, healed, wrong = _once(Fleet(running), running.events, verb, agent)
                noticed.append(seconds)
                back.append(healed)
                others += wrong
            yield Measure(row, f"{verb} until `error`", target, noticed, bound=bound)
            yield Measure(row, f"undone until `ok`, the agent's start included ({verb})", target, back)
            yield Measure(row, f"wrong states of other agents ({verb})", target, [others], unit="", bound=0)
        if target == "compose":
            yield from _all_at_once(Fleet(running), running.events, target)


def _once(fleet: Fleet, events: Events, verb: str, agent: str) -> tuple[float, float, int]:
    """Return seconds until `error`, seconds until `ok` again, and how many other agents were shown wrong."""
    mark = len(events.since())
    getattr(fleet.faults, verb)(agent)
    noticed = _until(events, mark, {agent}, "error")
    ended = len(events.since())
    began = time.monotonic()
    fleet.faults.undo()
    _until(events, ended, {agent}, "ok")
    healed = time.monotonic() - began
    fleet.wait_for(dict.fromkeys(fleet.agents, "ok"), within=PATIENCE)
    changes = [change for change in events.since(mark) if slug(change.agent) != slug(agent)]
    callers = set(map(slug, CALLERS[agent]))
    return noticed, healed, sum(slug(change.agent) not in callers or change.new == "error" for change in changes)


def _all_at_once(fleet: Fleet, events: Events, target: str) -> Iterator[Measure]:
    mark = len(events.since())
    for agent in fleet.agents:
        fleet.faults.kill(agent)
    noticed = _until(events, mark, set(fleet.agents), "error")
    began = time.monotonic()
    fleet.faults.undo()
    fleet.wait_for(dict.fromkeys(fleet.agents, "ok"), within=PATIENCE)
    yield Measure("17", f"{len(fleet.agents)} killed until each is `error`", target, [noticed], bound=6.0)
    yield Measure("17", "started until all are `ok`", target, [time.monotonic() - began])


def _until(
    events: Events, mark: int, agents: set[str], status: str, clock: Callable[[], float] = time.monotonic
) -> float:
    """Return the seconds until each of the agents has come to this status since `mark`."""
    began = clock()
    wanted = set(map(slug, agents))
    while clock() - began < PATIENCE:
        count = len(events.since())
        if wanted <= {slug(change.agent) for change in events.since(mark) if change.new == status}:
            return clock() - began
        events.wait(count, 1.0)
    raise TimeoutError(f"{', '.join(sorted(agents))}: not {status} after {PATIENCE:g} s")

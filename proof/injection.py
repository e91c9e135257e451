"""Faults of a fleet that runs: how soon its registry tells of them, how soon all is well again, who else was hit.

Each comes at a moment of its own within an interval of the registry, whose catalogue is asked for all the while.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pallas_testing.fleet import Fleet, start
from pallas_testing.fleet.events import Change, Events
from pallas_testing.fleet.start import Running
from pallas_testing.project.fleet_file import REGISTRY, slug
from pallas_testing.targets.base import Order
from proof import load
from proof.faults import CALLERS, EXAMPLE, FAULTS, HUNG, LEAVES, Fault
from proof.results import Measure

INTERVAL = 5.0
PATIENCE = 300.0
"""Seconds to wait for a state before a fault counts as never noticed."""
SETTLED = 60.0
"""Seconds for a verb that has an agent started again, or its connections led elsewhere."""
_OK = 200
ASKED = 50.0
"""Requests for the catalogue per second, by 16 clients, while faults are injected."""


@dataclass
class Effects:
    """What the same fault led to, each time: seconds, and which changes of other agents were wrong.

    `injected` is how long the verb itself took.
    """

    injected: list[float] = field(default_factory=list)
    noticed: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)
    wrong: list[Change] = field(default_factory=list)


def measure(target: str, count: int, seed: int) -> Iterator[Measure]:
    """Yield what `count` times each fault of a target led to."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if target == "cluster":
            from tests.e2e import release  # noqa: PLC0415 - the project's own cluster, for who has no other

            stack.enter_context(release.cluster(Path.cwd(), folder))
        (folder / "fleet").mkdir()
        running = stack.enter_context(start.running(target, Order(EXAMPLE / "agents.yaml", folder / "fleet"), {}))
        tally = stack.enter_context(load.asked(running.target.url(REGISTRY), ASKED))
        for fault in FAULTS:
            if target in fault.targets:
                chance = random.Random(f"{seed} {target} {fault.what}")
                why = fault.ends.get(target, "")
                tally.meanwhile, tally.ends, tally.ended = fault.what, bool(why), 0
                times = max(1, round(count * fault.share))
                yield from measured(fault, target, effects(running, fault, times, chance))
                if why:
                    what = f"open connections to the registry that the verb ends, {why} ({fault.what})"
                    yield Measure(fault.row, what, target, [tally.ended], unit="")
    yield load.others("17", "answers of the registry meanwhile that are no 200", tally, target)


def effects(running: Running, fault: Fault, count: int, chance: random.Random) -> Effects:
    """Inject a fault `count` times, and undo it each time."""
    result = Effects()
    for _ in range(count):
        agent = chance.choice(LEAVES)
        time.sleep(chance.uniform(0, INTERVAL))  # the moment of the fault, not a wait for anything
        _once(Fleet(running), running.events, fault, agent, result)
    return result


def measured(fault: Fault, target: str, result: Effects) -> Iterator[Measure]:
    """Yield the measures of one fault on one target."""
    if fault.status:
        if reason := fault.late.get(target):
            yield Measure(fault.row, f"{fault.what} {reason}", target, result.injected)
        yield Measure(fault.row, f"{fault.what} until `{fault.status}`", target, result.noticed, bound=fault.bound)
        yield Measure(fault.row, f"undone until `ok` again ({fault.what})", target, result.back)
    elif fault.status is None:
        who = "all run again and are" if fault.everybody else "another runs and is"
        yield Measure(fault.row, f"{fault.what} until {who} `ok`", target, result.back)
    if not fault.everybody:
        whose = "wrong states of other agents" if fault.status != "" else "changes of any agent"
        which = "; ".join(map(str, result.wrong))
        what = f"{whose} ({fault.what}{f': {which}' if which else ''})"
        yield Measure(fault.row, what, target, [len(result.wrong)], unit="", bound=0)


def _once(fleet: Fleet, events: Events, fault: Fault, agent: str, result: Effects) -> None:
    # what `/events` still has to tell of the fault before is no wrong state of this one
    fleet.registry.catch_up()
    mark = len(events.since())
    hit = set(fleet.agents) if fault.everybody else {agent}
    began = time.monotonic()
    if fault.status:
        with ThreadPoolExecutor(1) as executor:  # the verb may take longer than the registry
            noticed = executor.submit(until, events, mark, hit, fault.status)
            fault.inject(fleet, agent)
            result.injected.append(time.monotonic() - began)
            late = result.injected[-1] if fleet.target in fault.late else 0.0
            result.noticed.append(max(0.0, noticed.result() - late))
        mended = len(events.since())
        began = time.monotonic()
        fleet.faults.undo()
        until(events, mended, hit, "ok")
    else:
        fault.inject(fleet, agent)
        if fault.status is None:
            fleet.restore()
        else:
            result.wrong += _changes(fleet, events, agent)
    result.back.append(time.monotonic() - began)
    fleet.restore()
    if fault.status != "" and not fault.everybody:
        result.wrong += wrong(events, mark, agent)


def _changes(fleet: Fleet, events: Events, agent: str) -> list[Change]:
    """Return the changes that come in the time in which any fault is noticed, once a verb itself is over."""
    states = {slug(name): "ok" for name in fleet.agents}
    mark = len(events.since())
    try:
        fleet.wait_for(lambda: fleet.registry.recheck(agent) == _OK, within=SETTLED)
        fleet.wait_for(states, within=SETTLED)
    except AssertionError:  # it has been noticed, and stays so
        return events.since(mark) or [Change(agent, "ok", "ok", "it is not what it was", "")]
    fleet.registry.catch_up()
    mark = len(events.since())
    events.wait(mark, HUNG)
    return events.since(mark)


def wrong(events: Events, mark: int, agent: str) -> list[Change]:
    """Return the changes since `mark` that tell of an agent that is not concerned, or too much of a caller."""
    callers = set(map(slug, CALLERS[agent]))
    changes = [change for change in events.since(mark) if slug(change.agent) != slug(agent)]
    return [change for change in changes if slug(change.agent) not in callers or change.new == "error"]


def until(
    events: Events,
    mark: int,
    agents: Collection[str],
    status: str,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """Return the seconds until each of the agents has come to this status since `mark`.

    Raises:
        TimeoutError: they have not.
    """
    began = clock()
    wanted = set(map(slug, agents))
    while clock() - began < PATIENCE:
        count = len(events.since())
        if wanted <= {slug(change.agent) for change in events.since(mark) if change.new == status}:
            return clock() - began
        events.wait(count, 1.0)
    raise TimeoutError(f"{', '.join(sorted(agents))}: not {status} after {PATIENCE:g} s")

"""The faults that are injected into a fleet that runs: by which verb, on which targets, and what is expected of each.

examples/02-pallas with the registry's own interval. A verb that a target refuses by name is not in its list here:
docs/testing.md says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pallas_testing.fleet import Fleet

EXAMPLE = Path(__file__).parents[1] / "examples" / "02-pallas"
TARGETS = ("processes", "compose", "cluster")
REFUSED, HUNG = 6.0, 11.0
"""Bounds in seconds of the registry's five-second interval: for who refuses connections, and for who is silent."""
PREFLIGHT = 75.0
"""The same for a model provider: agents ask it once a minute for up to five seconds, and are asked every five."""
LEAVES = ("tech_research", "engineering")
"""Agents that nobody but their callers needs, so that all others stay what they are."""
CALLERS: Mapping[str, tuple[str, ...]] = {"tech_research": ("research", "harper"), "engineering": ("harper",)}
"""Who may be told `degraded` for each of them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A verb of `fleet.faults`, done to an agent.

    `status` is what the registry has to tell of it within `bound` seconds. Empty means that nobody may change at all,
    None that another one takes its place at once, whether the registry has seen that or not.
    """

    row: str
    what: str
    targets: tuple[str, ...]
    inject: Callable[[Fleet, str], None]
    status: str | None = "error"
    bound: float | None = REFUSED
    everybody: bool = False
    """It befalls all agents; else one of `LEAVES`."""
    share: float = 1.0
    """Of the times that each fault is injected: less where one takes minutes."""
    late: Mapping[str, str] = field(default_factory=dict)
    """Targets on which it has only happened when its verb is over, and why: the seconds count from then."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """Targets on which the verb itself ends open connections to the registry from outside, and why."""


_PAUSED = {"cluster": "until all its processes stand still, after a roll-out where no process may trace another one"}
_DETACHED = {"compose": "as Docker publishes its port on one of its networks, which may be the one that is taken away"}
_REMOVED = {"cluster": "until its pods are gone, after the 5 s of preStop and a graceful end"}


def _kill_all(fleet: Fleet, _: str) -> None:
    for agent in fleet.agents:
        fleet.faults.kill(agent)


FAULTS = (
    Fault("1", "kill", ("compose",), lambda fleet, agent: fleet.faults.kill(agent)),
    Fault("1", "kill", ("processes",), lambda fleet, agent: fleet.faults.kill(agent), status=None, bound=None),
    Fault("4", "kill", ("cluster",), lambda fleet, agent: fleet.faults.kill(agent), status=None, bound=None),
    Fault("2", "pause", TARGETS, lambda fleet, agent: fleet.faults.pause(agent), bound=HUNG, late=_PAUSED),
    Fault("3", "remove", ("compose", "cluster"), lambda fleet, agent: fleet.faults.remove(agent), late=_REMOVED),
    Fault(
        "7",
        "slow by 0.5 s each way",
        ("compose",),
        lambda fleet, agent: fleet.faults.slow("registry", agent, 0.5),
        status="",
        bound=None,
    ),
    Fault(
        "7",
        "slow by 1.6 s each way",
        ("compose",),
        lambda fleet, agent: fleet.faults.slow("registry", agent, 1.6),
        bound=HUNG,
    ),
    Fault(
        "8",
        "partition from the registry",
        ("compose", "cluster"),
        lambda fleet, agent: fleet.faults.partition("registry", agent),
        bound=HUNG,
        ends=_DETACHED,
    ),
    Fault("9", "cut after 100 bytes", ("compose",), lambda fleet, agent: fleet.faults.cut("registry", agent, 100)),
    Fault("17", "kill of all agents", ("compose",), _kill_all, everybody=True, share=0.25),
    Fault(
        "17",
        "kill of all agents",
        ("processes", "cluster"),
        _kill_all,
        status=None,
        bound=None,
        everybody=True,
        share=0.25,
    ),
    Fault(
        "21",
        "fill_disk",
        ("compose", "cluster"),
        lambda fleet, agent: fleet.faults.fill_disk(agent),
        status="",
        bound=None,
        share=0.5,
    ),
    Fault("23", "restart", TARGETS, lambda fleet, agent: fleet.faults.restart(agent), status=None, bound=None),
    Fault(
        "24",
        "provider.down",
        TARGETS,
        lambda fleet, _: fleet.faults.provider.down(),
        status="degraded",
        bound=PREFLIGHT,
        everybody=True,
        share=0.2,
    ),
)

"""The targets by their names, each imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from pallas_testing.targets.base import Order, Target

TARGETS = {
    "cluster": "pallas_testing.targets.cluster.target:Cluster",
    "compose": "pallas_testing.targets.compose:Compose",
    "processes": "pallas_testing.targets.processes:Processes",
}
"""Name of a target -> its class."""


def target(name: str, order: Order) -> Target:
    """Return a fleet on the target of this name, not yet started.

    Raises:
        KeyError: there is no such target.
    """
    module, _, attribute = TARGETS[name].partition(":")
    fleet: Target = getattr(import_module(module), attribute)(order)
    return fleet

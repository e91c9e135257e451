"""The fleets in containers on this machine, as docker lists them."""

from __future__ import annotations

import subprocess

from pallas_contract.launch import compose_containers
from pallas_contract.launch.compose_containers import Stack

_PATIENCE = 5.0
"""Seconds for the engine; one that is elsewhere and away must not hold up who runs processes."""


def all_here() -> list[Stack]:
    """Return the stacks whose registries docker has, running or ended; none where it is not here or fails."""
    command = compose_containers.registries()
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return []
    return list(compose_containers.stacks(done.stdout))

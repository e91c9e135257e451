"""The fleets in containers on this machine, as docker lists them."""

from __future__ import annotations

import re
import subprocess

from pallas_cli.trouble import Trouble
from pallas_contract.launch import compose_containers
from pallas_contract.launch.compose_containers import Stack

_PATIENCE = 60.0
"""Seconds for the engine of a busy machine."""
BRIEF = 5.0
"""Seconds where the list can be done without: an engine that is elsewhere and away must not hold up anybody."""
_NO_ENGINE = re.compile(r"unix://.*\bdaemon is running\b|unix://.*\bdocker daemon running\b", re.IGNORECASE)
"""Docker's words (of version 28 and 29) where nobody listens on the socket of this machine: no container runs there."""


class NoAnswer(Trouble):
    """Docker is here and does not say which containers it has."""


def all_here(patience: float | None = None) -> list[Stack]:
    """Return the stacks whose registries docker has, running or ended; none where there is no docker, or no engine.

    Raises:
        NoAnswer: docker fails, or has not answered after `patience` seconds: nobody knows what runs.
    """
    patience = _PATIENCE if patience is None else patience
    command = compose_containers.registries()
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=patience)  # noqa: S603
    except OSError:
        return []
    except subprocess.TimeoutExpired:
        raise _no_answer(f"no answer in {patience:g} s") from None
    if done.returncode:
        if _NO_ENGINE.search(done.stderr):
            return []
        raise _no_answer(done.stderr.strip() or f"it ends with {done.returncode}")
    return list(compose_containers.stacks(done.stdout))


def _no_answer(reason: str) -> NoAnswer:
    hint = "so nobody knows what runs in containers; see that `docker ps` answers, and try again"
    return NoAnswer(f"docker does not list its containers: {reason}\n    {hint}")

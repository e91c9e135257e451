"""One program as a target has it: read back from files, and compared with the plan by `pallas_gen.verify`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pallas_contract import names

Tree = Mapping[str, Any]

TARGET_VARIABLES = frozenset({names.ENV_PODS_DOMAIN, names.ENV_REPLICA_DOMAIN, names.ENV_LISTEN_ON})
"""Environment of one target alone: the chart knows the namespace, a network of compose carries both directions."""


class Unreadable(Exception):
    """Raised where the files on disk cannot be read back: why, what to do, and where in the file (from 1) if known."""

    def __init__(self, message: str, hint: str = "", *, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.hint = hint
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class ObservedWorkload:
    """One program in words that all targets share: those of the plan."""

    image: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    port: int
    probe: str
    """URL that tells whether it can serve; something else where a target asks something else."""
    order: tuple[str, ...]
    """Hosts that must be ready before it starts."""
    secrets: tuple[str, ...]
    """`name in /run/secrets: file with its content`."""
    limits: tuple[float, int]
    """Cores and MiB."""
    peers: tuple[str, ...]
    """Hosts that it reaches or is reached by; empty where nothing separates them."""
    keeps: tuple[str, ...]
    """Folders that outlive a restart."""
    callers: tuple[str, ...]
    """Those of the peers that reach an agent; empty for what is no agent."""
    collector: str = ""
    """`host:port` of the collector of traces, where it is reachable."""


def shared_env(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the variables that all targets set alike, sorted."""
    return tuple(sorted((key, value) for key, value in env.items() if key not in TARGET_VARIABLES))


def mebibytes(quantity: str) -> int:
    """Return a size like `512Mi`, `512M` (Docker's is binary) or `1Gi` in MiB.

    Raises:
        ValueError: it has another unit, or none.
    """
    number = quantity.removesuffix("i")
    if number[-1:] not in ("M", "G"):
        raise ValueError(f"{quantity!r} is no size in M or G")
    return int(number[:-1]) * (1024 if number.endswith("G") else 1)

"""The registry of another fleet on the port of a fleet file is not asked in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pallas_cli.running import stacks
from pallas_cli.running.catalogue import NoRegistry
from pallas_contract.launch import owner
from pallas_contract.launch.compose_containers import Stack
from pallas_contract.launch.owner import Owner


@dataclass(frozen=True, slots=True)
class Fleet:
    """The fleet that is meant: its name and its file."""

    name: str
    file: Path


class OtherFleet(NoRegistry):
    """The registry of another fleet answers where that of the fleet file should."""


def refuse_other(of_registry: Owner | None, url: str, fleet: Fleet, *, trusted: bool = False) -> None:
    """Let nobody take the answers of another fleet for those of `fleet`.

    Docker is not asked again about a registry that is `trusted`: it was found to be the fleet's, and answers since.

    Raises:
        OtherFleet: the registry at `url` is that of another fleet.
    """
    if other := owner.other(of_registry, url, name=fleet.name, file=fleet.file, stacks=tuple if trusted else _stacks):
        hint = f"{owner.remedy(fleet.file)}; to ask that one, name it: --registry {url}"
        raise OtherFleet(f"the registry at {url} is that of another {other}\n    {hint}")


def _stacks() -> Sequence[Stack]:
    """Return the stacks that docker has; none where it does not say: nobody knows whose."""
    try:
        return stacks.all_here(stacks.BRIEF)
    except stacks.NoAnswer:
        return []

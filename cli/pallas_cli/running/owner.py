"""Whose registry answers on the port of a fleet file: a copy of a project, or another fleet, may have the same port."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pallas_cli.running import stacks
from pallas_cli.running.catalogue import NoRegistry, Owner
from pallas_contract import names
from pallas_contract.launch import run_files


@dataclass(frozen=True, slots=True)
class Fleet:
    """The fleet that is meant: its name and its file."""

    name: str
    file: Path


class OtherFleet(NoRegistry):
    """The registry of another fleet answers where that of the fleet file should."""


def refuse_other(owner: Owner | None, url: str, fleet: Fleet) -> None:
    """Let nobody take the answers of another fleet for those of `fleet`.

    A registry elsewhere, at a public URL, is judged by its name alone: its fleet file has another path there.

    Raises:
        OtherFleet: the registry at `url` is that of another fleet.
    """
    if owner is None:
        return
    if owner.name != fleet.name:
        raise _trouble(url, fleet, f"fleet, `{owner.name}`; {fleet.file} is `{fleet.name}`")
    if urlsplit(url).hostname not in names.LOCAL_HOSTS:
        return
    if owner.placement == "local" and owner.project != run_files.project_id(fleet.file):
        raise _trouble(url, fleet, f"fleet of this name, whose fleet file is not {fleet.file} here")
    if owner.placement == "container" and (other := _published(urlsplit(url).port or 80, fleet.file)):
        raise _trouble(url, fleet, f"fleet of this name, that of {other} in containers")


def _published(port: int, file: Path) -> Path | None:
    """Return the fleet file of the stack with a port, where it is another one than `file`; None where nobody knows."""
    try:
        listed = stacks.all_here(stacks.BRIEF)
    except stacks.NoAnswer:
        return None
    for stack in listed:
        if port in stack.ports and (other := stack.fleet_file):
            return other if os.path.realpath(other) != os.path.realpath(file) else None
    return None


def _trouble(url: str, fleet: Fleet, other: str) -> OtherFleet:
    hint = (
        f"end that fleet where it was started, or give {fleet.file} other ports (`registry_port` and each `port`); "
        f"to ask that one, name it: --registry {url}"
    )
    return OtherFleet(f"the registry at {url} is that of another {other}\n    {hint}")

"""Whose registry answers on the port of a fleet file: a copy of a project, or another fleet, may have the same port."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.launch import run_files
from pallas_contract.launch.compose_containers import Stack


@dataclass(frozen=True, slots=True)
class Owner:
    """The fleet of a registry, by its own word."""

    name: str
    placement: str
    """`local` or `container`."""
    project: str = ""
    """Digest of the path of its fleet file (run_files.project_id); empty in containers."""


def parse(services: Mapping[str, Mapping[str, str]]) -> Owner | None:
    """Return the owner by a registry's document of services; None where an older one says nothing of it.

    Raises:
        KeyError, TypeError, AttributeError: it is no such document.
    """
    entry = services.get("fleet")
    return Owner(entry["name"], entry["placement"], entry.get("project", "")) if entry else None


def other(owner: Owner | None, url: str, *, name: str, file: Path, stacks: Callable[[], Iterable[Stack]]) -> str:
    """Return which other fleet than `name`, of the fleet file `file`, has the registry at `url`; else nothing.

    The text goes after "another". `stacks` lists the fleets in containers on this machine, and is called where these
    alone tell. A registry elsewhere, at a public URL, is judged by its name alone: its fleet file has another path
    there.
    """
    if owner is None:
        return ""
    if owner.name != name:
        return f"fleet, `{owner.name}`; {file} is `{name}`"
    if urlsplit(url).hostname not in names.LOCAL_HOSTS:
        return ""
    if owner.placement == "local" and owner.project != run_files.project_id(file):
        return f"fleet of this name, whose fleet file is not {file} here"
    if owner.placement == "container" and (published := _published(urlsplit(url).port or 80, file, stacks())):
        return f"fleet of this name, that of {published} in containers"
    return ""


def _published(port: int, file: Path, stacks: Iterable[Stack]) -> Path | None:
    """Return the fleet file of the stack with a port, where it is another one than `file`; None where nobody knows."""
    for stack in stacks:
        if port in stack.ports and (written_for := stack.fleet_file):
            return written_for if os.path.realpath(written_for) != os.path.realpath(file) else None
    return None


def remedy(file: Path) -> str:
    """Return what to do about another fleet on the ports of `file`."""
    return f"end that fleet where it was started, or give {file} other ports (`registry_port` and each `port`)"

"""A copy of the user's project with ports of its own; the project itself is only read."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

from pallas_testing.project import edits, fleet_file
from pallas_testing.project.claims import Claims
from pallas_testing.project.fleet_file import FleetFile

_NEVER = {".git", ".hg", ".pallas", "node_modules", "__pycache__", ".tox", ".nox"}
_LOCK = "agents.lock"
"""It has digests of entries with the ports of the original: a copy would drift from it at once."""
_CACHE = "_cache"
"""What ends like this and begins with a dot is a cache: .pytest_cache, .mypy_cache, .ruff_cache."""
_PORTS = range(1, 65536)
WITH_ADDRESSES = ("fastagent.*.yaml", "fast-agent*.yaml", ".env")
"""Files beside agents.yaml in which somebody may have typed the address of a member."""


def copy(file: Path, folder: Path, claims: Claims, pool: IPv4Network | None = None) -> FleetFile:
    """Copy the project of an agents.yaml to `folder`, which is not there yet, and return the file of the copy.

    Every port that the file gives, the registry's in any case, is another one, claimed by `claims`; so are the ports
    in addresses of this machine in fast-agent's files. What is no port, missing or given twice stays wrong.
    Containers get their networks from `pool`, where there is one.

    Raises:
        NoFleetFile: the file is not there, or no YAML.
        claims.NothingFree: there are no ports.
    """
    original = fleet_file.read(file)
    shutil.copytree(file.parent, folder, symlinks=True, ignore=partial(_ignored, folder.resolve()))
    places = _ports(original)
    given = dict.fromkeys(places.values())
    claimed = dict(zip(given, claims.ports(len(given)), strict=True))
    numbers = {path: claimed[port] for path, port in places.items()}
    values: dict[edits.Path, object] = {**numbers}
    if pool is not None:
        values["networks", "pool"] = pool
    copied = folder / file.name
    copied.write_text(edits.set_values(file.read_text("utf-8"), values), "utf-8")
    _readdress(folder, claimed)
    return fleet_file.read(copied)


def _ports(file: FleetFile) -> dict[edits.Path, int]:
    """Return the ports of a file by their keys, the registry's and a gateway's also where the file has none."""
    ports: dict[edits.Path, int | None] = {("registry_port",): file.registry_port, ("gateway", "port"): file.gateway}
    for section, members in (("agents", file.agents), ("services", file.services)):
        ports |= {(section, name, "port"): port for name, port in members.items()}
    return {path: port for path, port in ports.items() if port is not None and port in _PORTS}


def _readdress(folder: Path, ports: Mapping[int, int]) -> None:
    """Change the ports in addresses of this machine, in files of fast-agent and in `.env`."""
    numbers = "|".join(map(str, ports))
    address = re.compile(rf"((?:localhost|127\.0\.0\.1|\[::1\]):)({numbers})\b")
    for path in {path for pattern in WITH_ADDRESSES for path in folder.glob(pattern)}:
        text = path.read_text("utf-8", "surrogateescape")
        changed = address.sub(lambda match: f"{match[1]}{ports[int(match[2])]}", text)
        if changed != text:
            path.write_text(changed, "utf-8", "surrogateescape")


def _ignored(target: Path, folder: str, names: list[str]) -> set[str]:
    """Return what no fleet needs: version control, caches, virtual environments, what is neither file nor folder.

    Nor what the copy itself lies in, as below a temporary folder inside the project.
    """
    around = {target, *target.parents}
    return {
        name
        for name in names
        if name in {*_NEVER, _LOCK}
        or _is_cache(name)
        or Path(folder, name).resolve() in around
        or _is_no_source(Path(folder, name))
    }


def _is_cache(name: str) -> bool:
    return name.startswith(".") and name.endswith(_CACHE)


def _is_no_source(path: Path) -> bool:
    if path.is_symlink():
        return False
    return (path / "pyvenv.cfg").is_file() or not (path.is_dir() or os.path.isfile(path))

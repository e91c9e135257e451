"""The lock of the MCP servers on stdio: everything that each of their packages brings along, by version and hash. Pure.

`servers.lock.json` lies beside agents.yaml and is committed with it. `pallas-gen lock` writes it; the build installs
by it. It covers every server of fast-agent's configuration, whoever uses it, and so changes with that file alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.fleet.fastagent import Command
from pallas_contract.problems import Problem, Where
from pallas_gen.dependencies import recipe
from pallas_gen.dependencies.launch import Package

FILE = "servers.lock.json"
COMMAND = "`pallas-gen lock`"
_VERSION = 1
_SHAPES = {"python": ("requirements", list), "npm": ("package-lock", dict)}
"""Each kind's key in an entry, and what stands there: lines of a requirements file, or npm's package-lock.json."""

Locks = Mapping[str, str]
"""Entries by `Package.key`, each as JSON for `bake`."""


def packages(commands: Iterable[Command]) -> tuple[Package, ...]:
    """Return the packages that the commands start and an image can have, each once, sorted."""
    wanted = {package for command in commands if (package := recipe.package_of(command))}
    return tuple(sorted(wanted, key=lambda package: package.key))


def parse(text: str, problems: list[Problem]) -> Locks:
    """Return the entries of the file. What is wrong with it goes to `problems`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    entries = data.get("servers") if isinstance(data, dict) and data.get("version") == _VERSION else None
    if not isinstance(entries, dict) or not all(_is_entry(key, entry) for key, entry in entries.items()):
        message = "is no lock of servers that this version of the kit reads"
        problems.append(Problem(Where(FILE), message, f"write it anew: {COMMAND}", code=Code.SERVER_LOCK))
        return {}
    return {key: _compact(entry) for key, entry in entries.items()}


def render(locks: Locks, wanted: Iterable[Package]) -> str:
    """Return the text of the file with the entries of those packages that are wanted and have one."""
    servers = {package.key: json.loads(locks[package.key]) for package in wanted if package.key in locks}
    return json.dumps({"servers": servers, "version": _VERSION}, indent=1, sort_keys=True) + "\n"


def resolved(text: str) -> Locks:
    """Return the entries that `bake` has resolved."""
    return {key: _compact(entry) for key, entry in json.loads(text).items()}


def missing(locks: Locks, commands: Mapping[str, Command]) -> Iterator[Problem]:
    """Yield a problem per server whose package is not in the lock."""
    for command in commands.values():
        package = recipe.package_of(command)
        if package and package.key not in locks:
            message = f"{FILE} has no `{package.specifier}`, which this server starts: the lock is out of date"
            yield Problem(
                command.where,
                message,
                f"{COMMAND} writes it anew; without that file nothing is locked",
                code=Code.SERVER_LOCK,
            )


def _is_entry(key: str, entry: Any) -> bool:
    name, shape = _SHAPES.get(key.partition(" ")[0], ("", dict))
    return isinstance(entry, dict) and isinstance(entry.get(name), shape)


def _compact(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True)

"""Folders of skills in the project: which a container needs although they are hidden, and which it does not get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet import skills
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Where
from pallas_gen.project import mounts


def used(fleet: ResolvedFleet, config: Config, definitions: Mapping[str, Definitions]) -> frozenset[str]:
    """Return the folders, as written, that the fleet file, fast-agent's configuration or the code of an agent names."""
    by_file = {name for agent in fleet.agents.values() for name in skills.named(agent, config)}
    by_code = {name for code in definitions.values() for agent in code.agents for name in agent.skills or ()}
    return frozenset(by_file | by_code)


def hidden(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return the plain paths of those that are there and hidden, sorted; the others are handed over in any case."""
    paths = set(mounts.inside(folder, names).values())
    return tuple(sorted(path for path in paths if is_hidden(path) and (folder / path).is_dir()))


def is_hidden(path: str) -> bool:
    """Return whether a part of `path` begins with a dot."""
    return any(part.startswith(".") for part in PurePosixPath(path).parts)


def problems(fleet: ResolvedFleet, config: Config, folder: Path, names: frozenset[str]) -> Iterator[Problem]:
    """Yield a warning per folder of skills that no container gets: outside of the project, or named by nobody."""
    inside = mounts.inside(folder, names)
    for name in sorted(names - inside.keys()):
        hint = "put it into the project folder"
        yield Problem(Where(config.file, field="skills"), f"{name} is outside: no container gets it", hint, "warning")
    if all(agent.skills is not None for agent in fleet.agents.values()):
        return
    for name in skills.SEARCHED:
        if name not in inside.values() and any((folder / name).glob("*/SKILL.md")):
            hint = f"`defaults: {{skills: [{name}]}}` has them read; `skills: []` agrees"
            yield Problem(Where(name), "nobody names these skills: no agent reads them", hint, "warning")

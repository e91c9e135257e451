"""Folders of skills in the project: which a container needs, and which it does not get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet import skills
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Where
from pallas_contract.project.load import Written
from pallas_gen.project import mounts


def of_agent(name: str, written: Written, definitions: Definitions) -> dict[str, Where]:
    """Return the folders, as written, that the fleet file, fast-agent's configuration or the agent's code names.

    Each has the position that names it.
    """
    by_code = {
        folder: definition.where_of("skills") for definition in definitions.agents for folder in definition.skills or ()
    }
    named = skills.named(written.fleet.agents[name], written.config)
    return by_code | {folder: _position(name, index, written) for index, folder in enumerate(named)}


def _position(name: str, index: int, written: Written) -> Where:
    if written.fleet.agents[name].skills is not None:
        return written.tree.where("agents", name, "skills", index)
    config = written.config
    path = ("skills", "directories", index)
    return config.tree.where(*path) if config.tree else Where(config.file, field="skills")


def problems(fleet: ResolvedFleet, folder: Path, names: Mapping[str, Where]) -> Iterator[Problem]:
    """Yield a warning per folder of skills that no container gets: outside of the project, or named by nobody.

    `names` are the folders that are named, each with the position that does.
    """
    inside = mounts.inside(folder, names)
    for name in sorted(names.keys() - inside.keys()):
        hint = "put it into the project folder"
        message = f"{name} is outside: no container gets it"
        yield Problem(names[name], message, hint, "warning", code=Code.SKILLS_OUTSIDE)
    if all(agent.skills is not None for agent in fleet.agents.values()):
        return
    for name in skills.SEARCHED:
        if name not in inside.values() and any((folder / name).glob("*/SKILL.md")):
            hint = f"`defaults: {{skills: [{name}]}}` has them read; `skills: []` agrees"
            yield Problem(
                Where(name), "nobody names these skills: no agent reads them", hint, "warning", code=Code.SKILLS_UNUSED
            )

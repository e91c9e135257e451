"""Folders of skills in the project: which a container needs, and which it does not get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet import skills
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet
from pallas_contract.problems import Problem, Where
from pallas_gen.project import mounts


def of_agent(agent: ResolvedAgent, config: Config, definitions: Definitions) -> frozenset[str]:
    """Return the folders, as written, that the fleet file, fast-agent's configuration or the agent's code names."""
    by_code = {name for definition in definitions.agents for name in definition.skills or ()}
    return frozenset({*skills.named(agent, config), *by_code})


def problems(fleet: ResolvedFleet, config: Config, folder: Path, names: frozenset[str]) -> Iterator[Problem]:
    """Yield a warning per folder of skills that no container gets: outside of the project, or named by nobody."""
    inside = mounts.inside(folder, names)
    for name in sorted(names - inside.keys()):
        hint = "put it into the project folder"
        yield Problem(
            Where(config.file, field="skills"),
            f"{name} is outside: no container gets it",
            hint,
            "warning",
            code=Code.SKILLS_OUTSIDE,
        )
    if all(agent.skills is not None for agent in fleet.agents.values()):
        return
    for name in skills.SEARCHED:
        if name not in inside.values() and any((folder / name).glob("*/SKILL.md")):
            hint = f"`defaults: {{skills: [{name}]}}` has them read; `skills: []` agrees"
            yield Problem(
                Where(name), "nobody names these skills: no agent reads them", hint, "warning", code=Code.SKILLS_UNUSED
            )

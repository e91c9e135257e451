"""Folders of skills, each with a `NAME/SKILL.md`: which an agent reads, and where fast-agent alone would search."""

from __future__ import annotations

from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedAgent

SEARCHED = (".agents/skills", ".claude/skills", ".fast-agent/skills")
"""Folders in which fast-agent finds skills that nobody named; an agent of the kit does not."""


def named(agent: ResolvedAgent, config: Config) -> tuple[str, ...]:
    """Return the folders that the fleet file names for `agent`, else those of fast-agent's configuration.

    A module or card may name others for its agents.
    """
    return config.skills if agent.skills is None else tuple(agent.skills)

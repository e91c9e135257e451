"""Whose word about folders of skills holds."""

from __future__ import annotations

import pytest
from fast_agent.constants import DEFAULT_SKILLS_PATHS

from pallas_contract.fleet import skills, source
from pallas_contract.fleet.fastagent import Config
from pallas_contract.validate import load


@pytest.mark.parametrize(
    ("defaults", "agent", "named"),
    [
        ("", "", ("c",)),
        ("skills: [a, b]", "", ("a", "b")),
        ("skills: [a]", ", skills: []", ()),
        ("", ", skills: []", ()),
    ],
)
def test_the_agents_then_the_defaults_then_the_configuration(defaults: str, agent: str, named: tuple[str, ...]) -> None:
    text = f"name: x\ndefaults: {{{defaults}}}\nagents:\n  scout: {{module: m, port: 8101{agent}}}\n"
    fleet = load.parse(source.parse(text, name="agents.yaml"))
    assert skills.named(fleet.agents["scout"], Config(skills=("c",))) == named


def test_the_folders_that_fast_agent_searches_are_known() -> None:
    assert set(skills.SEARCHED) == set(DEFAULT_SKILLS_PATHS)

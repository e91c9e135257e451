"""A definition that asks for a shell, and an agents.yaml that does not let it."""

from __future__ import annotations

import pytest

from pallas_contract.definitions import read
from pallas_contract.fleet import source
from pallas_contract.validate import load
from pallas_contract.validate.code import shell

MODULE = (
    "from fast_agent import FastAgent\nfast = FastAgent('x')\n@fast.agent(name='scout', shell={asked})\ndef a(): ...\n"
)
CARD = "---\ntype: agent\nshell: {asked}\n---\nYou are Scout.\n"


@pytest.mark.parametrize(
    ("keys", "code", "asked", "place"),
    [
        ("module: m", MODULE, "True", "m.py:3:33"),
        ("module: m", MODULE, "False", ""),
        ("module: m, shell: true", MODULE, "True", ""),
        ("card: c.md", CARD, "true", "c.md:3:1 shell"),
        ("card: c.md", CARD, "false", ""),
        ("card: c.md, shell: true", CARD, "true", ""),
    ],
)
def test_it_is_told_at_its_line(keys: str, code: str, asked: str, place: str) -> None:
    tree = source.parse(f"name: x\nagents:\n  scout: {{{keys}, port: 8101}}\n", name="agents.yaml")
    fleet = load.parse(tree)
    texts = {"m.py": code.format(asked=asked), "c.md": code.format(asked=asked)}
    definitions = {"scout": read.definitions(fleet.agents["scout"], texts.get)}
    assert [str(problem.where) for problem in shell.withheld(fleet, definitions)] == ([place] if place else [])

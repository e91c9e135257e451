"""What the page shows is what the package takes."""

from __future__ import annotations

import re
from pathlib import Path

from pallas_testing.model import Rule, Script
from pallas_testing.model.reader import parse
from tests.documentation import blocks

PAGE = (Path(__file__).parents[3] / "docs" / "scripted-model.md").read_text()


def test_the_script_of_the_page_is_one() -> None:
    (block,) = blocks.of("scripted-model")
    script = parse(block.text, "script.yaml").check(Script)
    assert len(script.agents["harper"].rules) == 3


def test_the_page_names_every_key_of_a_rule() -> None:
    keys = {field.alias or name for name, field in Rule.model_fields.items()}
    assert keys - set(re.findall(r"`([a-z_]+)[:`]", PAGE)) == set()
    assert set(Script.model_fields) - set(re.findall(r"[`\n]([a-z_]+)[:`]", PAGE)) == set()

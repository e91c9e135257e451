"""The table of what fast-agent takes, for those who check without importing it: as the installed fast-agent has it.

`--rewrite` writes it; `make schema` does so after an upgrade of fast-agent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fast_agent.config import Settings
from fast_agent.core.agent_card_rules import ALLOWED_FIELDS_BY_TYPE, REQUIRED_FIELDS_BY_TYPE
from fast_agent.core.exceptions import ModelConfigError
from fast_agent.llm.model_database import ModelDatabase
from fast_agent.llm.model_factory import ModelFactory

from pallas_contract.fleet import engine_table

PROSE = frozenset({"title", "description", "default", "examples", "format", "discriminator"})
"""Keys of a schema that refuse nothing."""


def bare(schema: Any) -> Any:
    """Return a schema without its prose; the names under `properties` and `$defs` are no keys of a schema."""
    if isinstance(schema, list):
        return [bare(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    named = {"properties", "$defs"}
    return {
        key: {name: bare(entry) for name, entry in value.items()} if key in named else bare(value)
        for key, value in schema.items()
        if key not in PROSE
    }


def models() -> dict[str, str]:
    """Return the models that need no prefix, each with its provider."""
    found = {}
    for name in {*ModelFactory.MODEL_PRESETS, *ModelDatabase.MODELS}:
        try:
            found[name] = ModelFactory.parse_model_spec(name, presets=ModelFactory.MODEL_PRESETS).provider.value
        except ModelConfigError:
            continue
    return found


def test_the_table_is_that_of_the_installed_fast_agent(expected) -> None:
    cards = {
        kind: {"keys": sorted(keys), "required": sorted(REQUIRED_FIELDS_BY_TYPE[kind])}
        for kind, keys in ALLOWED_FIELDS_BY_TYPE.items()
    }
    schema = bare(Settings.model_json_schema(mode="validation"))
    table = {"cards": cards, "models": models(), "settings": schema["properties"], "definitions": schema["$defs"]}
    # A line per entry of a section: short in the repository, and an upgrade can be read in the difference.
    sections = []
    for name, section in sorted(table.items()):
        lines = [f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(section.items())]
        sections.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    expected(Path(engine_table.PATH), "{\n" + ",\n".join(sections) + "\n}\n")

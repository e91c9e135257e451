"""What fast-agent takes, as data: the schema of its configuration, the keys of cards, the models it knows by name.

Written from the installed fast-agent by tests/agent_runtime/engine/test_engine_table.py, which fails when it is not
current: who checks a project imports nothing of fast-agent, which takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("engine_table.json")


@cache
def _table() -> Mapping[str, Any]:
    # Read when it is first needed: most commands never do.
    table: Mapping[str, Any] = json.loads(PATH.read_bytes())
    return table


def settings() -> Mapping[str, Any]:
    """Return the JSON schema of each key of fastagent.config.yaml; a `$ref` leads into `definitions`."""
    schemas: Mapping[str, Any] = _table()["settings"]
    return schemas


def definition(reference: str) -> Mapping[str, Any]:
    """Return the schema that a `$ref` names."""
    schema: Mapping[str, Any] = _table()["definitions"][reference.rpartition("/")[2]]
    return schema


def card_keys(kind: str) -> Mapping[str, list[str]] | None:
    """Return `keys` and `required` of a card of that type, None where there is no such type."""
    kinds: Mapping[str, Mapping[str, list[str]]] = _table()["cards"]
    return next((keys for name, keys in kinds.items() if name.lower() == kind.strip().lower()), None)


def card_kinds() -> list[str]:
    """Return the types of cards."""
    return sorted(_table()["cards"])


def models() -> Mapping[str, str]:
    """Return the provider of each model that may be written without a prefix, presets (`sonnet`) included."""
    names: Mapping[str, str] = _table()["models"]
    return names

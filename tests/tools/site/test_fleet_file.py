"""tools/site/fleet_file.py: each key of the schema has its row, by its name, type, default and meaning."""

from __future__ import annotations

import json
import re

import pytest

from pallas_gen import schema
from tools.site import fleet_file

SCHEMA = json.loads(schema.agents_schema())
PAGE = fleet_file.page(SCHEMA)


@pytest.mark.parametrize("part", ["", *(name for name, value in SCHEMA["$defs"].items() if "properties" in value)])
def test_every_key_has_a_row(part: str) -> None:
    definition = SCHEMA["$defs"][part] if part else SCHEMA
    section = PAGE[PAGE.index(f"\n## {part or 'The file'}\n") :][1:].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]", section, re.MULTILINE)
    assert sorted(rows) == sorted(definition["properties"])


def test_every_type_that_is_named_has_a_section() -> None:
    names = {name.lower() for name in re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", PAGE)) <= names


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "| `key` | integer, 1 to 9 | `3` | a. |"),
        ({"type": "number", "exclusiveMinimum": 0}, "| `key` | number, more than 0 |  | a. |"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "| `key` | string |  | a. |"),
        ({"enum": ["a", "b"], "default": "a"}, "| `key` | `a` or `b` | `a` | a. |"),
        ({"type": "array", "items": {"$ref": "#/$defs/Icon"}}, "| `key` | list of [Icon](#icon) |  | a. |"),
        ({"type": "object", "patternProperties": {"x": {"type": "string"}}}, "| `key` | map of string |  | a. |"),
        ({"type": "boolean", "default": False}, "| `key` | boolean | `false` | a. |"),
    ],
)
def test_a_row(value: dict[str, object], row: str) -> None:
    schema = {"properties": {"key": {**value, "description": "a."}}, "$defs": {}}
    assert row in fleet_file.page(schema).splitlines()


def test_a_required_key_comes_first_and_says_so() -> None:
    keys = {name: {"type": "string", "description": "a | b"} for name in ("first", "last")}
    page = fleet_file.page({"properties": keys, "required": ["last"], "$defs": {}})
    assert page.splitlines()[-2:] == [
        "| `last` | string | **required** | a \\| b |",
        "| `first` | string |  | a \\| b |",
    ]

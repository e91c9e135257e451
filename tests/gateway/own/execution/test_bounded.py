"""Schemas of strangers: what could take long is passed over or refused, and the rest is checked."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_gateway.own.execution import bounded, functions
from pallas_gateway.own.failures import Failed

LONG = {"x": "a" * 26 + "!", "y": [{}, {}]}
"""What `^(a+)+$` takes a second for, and twice that for each further character."""


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"pattern": "^(a+)+$"}}},
        {"properties": {"x": {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a+)+$"}}},
        {"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"allOf": [{"pattern": "^(a+)+$"}]}}},
        {"properties": {"y": {"uniqueItems": True}}},
    ],
    ids=["pattern", "by another class", "elsewhere", "each with each"],
)
def test_what_can_take_long_is_not_checked_for_a_stranger(schema: dict[str, Any]) -> None:
    functions.check_output({"outputSchema": schema}, LONG, is_stranger=True)
    functions.check_input({"inputSchema": schema}, LONG, is_stranger=True)


def test_properties_of_a_stranger_may_be_called_like_keywords() -> None:
    schema = {"properties": {"pattern": {"type": "string"}, "uniqueItems": {"type": "boolean"}}}
    with pytest.raises(Failed, match=r"output\.pattern: 1 is not of type 'string'"):
        functions.check_output({"outputSchema": schema}, {"pattern": 1}, is_stranger=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"enum": ["x"] * bounded.MOST},
        # each looks twice at the next
        {
            "$ref": "#/$defs/0",
            "$defs": {f"{n}": {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(60)} | {"60": {}},
        },
    ],
    ids=["names by pattern", "large", "twice as long with each"],
)
def test_a_schema_of_a_stranger_that_would_take_long_is_refused(
    monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any]
) -> None:
    monkeypatch.setattr(bounded, "SECONDS", 0.5)
    with pytest.raises(Failed, match="its schema cannot be used: TooMuchWork"):
        functions.check_output({"outputSchema": schema}, {"x": 1}, is_stranger=True)

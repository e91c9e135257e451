"""Functions of agents and their schemas, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from pallas_gateway.data_plane.plane import Route
from pallas_gateway.own.execution import bounded, functions
from pallas_gateway.own.execution.functions import FRESH, Functions
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers.peer import Peer, ToolCall

SCOUT = Peer("agent", "scout", Route("http://scout/mcp"))


def call(tool: str) -> ToolCall:
    return ToolCall(tool, {}, 60, "")


async def test_a_list_is_believed_for_a_while_and_what_it_lacks_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    tools = {"echo": {"name": "echo"}}
    asked = []

    async def listed(client: Any, agent: Peer, asking: ToolCall) -> dict[str, Any]:
        asked.append(asking.tool)
        return dict(tools)

    monkeypatch.setattr("pallas_gateway.own.peers.peer.tools", listed)
    client: Any = None
    listing = Functions(clock=lambda: now)
    for _ in range(2):
        assert await listing.find(client, SCOUT, call("echo")) == {"name": "echo"}
    assert asked == ["echo"]
    with pytest.raises(Failed, match="agent `scout` has echo"):
        await listing.find(client, SCOUT, call("new"))
    tools["new"] = {"name": "new"}
    assert await listing.find(client, SCOUT, call("new")) == {"name": "new"}
    now = FRESH + 1
    del tools["echo"]
    with pytest.raises(Failed):
        await listing.find(client, SCOUT, call("echo"))


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "object", "required": ["a"]}, "input"),
        ({"properties": {"b": {"items": {"type": "string"}}}}, "input.b.0"),
        ({"type": "nonsense"}, "input"),
        ({"$ref": "http://127.0.0.1:1/schema.json"}, "input"),
    ],
    ids=["missing", "deep", "no schema", "from elsewhere"],
)
def test_what_does_not_fit_is_named(schema: dict[str, Any], field: str) -> None:
    with pytest.raises(MCPError) as refused:
        functions.check_input({"inputSchema": schema}, {"b": [1]})
    assert (refused.value.code, refused.value.data["field"]) == (-32602, field)
    with pytest.raises(Failed) as failed:
        functions.check_output({"outputSchema": schema}, {"b": [1]})
    assert failed.value.reason == "function_error"


def test_without_a_schema_everything_fits() -> None:
    functions.check_input({"inputSchema": {"type": "object"}}, {"b": [1]})
    functions.check_output({}, {"b": [1]})


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

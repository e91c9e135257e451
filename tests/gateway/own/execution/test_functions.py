"""Functions of agents and their schemas, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from pallas_gateway.own.execution import functions
from pallas_gateway.own.execution.functions import FRESH, Functions
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers.peer import Peer, ToolCall
from pallas_gateway.policy.route import Route

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

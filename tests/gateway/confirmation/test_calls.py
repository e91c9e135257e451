"""Calls that another principal must confirm, through the whole gateway, by each way that leads to an agent."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest

from pallas_contract.documents import audit_check
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_contract.names import META_MODEL, META_SECONDS
from pallas_contract.probe.session import META, MODERN
from pallas_gateway.audit.recorder import Audit
from pallas_gateway.audit.trail import Trail
from pallas_gateway.confirmation.confirmations import Confirmations
from pallas_gateway.confirmation.gatekeeper import Gatekeeper
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.database import Database
from pallas_gateway.tenants import Tenants
from tests.gateway.door import OWN, PHONE, UI, Agent, Door, opened

KEY = b"0123456789abcdef"
FLEET = resolve(Fleet.model_validate({"name": "doors", "agents": {"scout": {"card": "a.md", "port": 8101}}}))
GATEWAY = Gateway.model_validate(
    {
        "agents": ["scout"],
        "tenants": {"acme": {"callers": ["phone"], "requests": "3/minute"}},
        "confirm": [{"agent": "scout", "tools": ["echo", "send_message"], "by": ["ui"]}],
    }
)
ABOUT = {
    f"{META}protocolVersion": MODERN,
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": {"name": "test", "version": "1"},
}


class Counting(Agent):
    """An agent that counts what it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        self.runs += 1
        return t.CallToolResult(content=[t.TextContent(type="text", text="done")])


@asynccontextmanager
async def closing(database: Database, audit: Audit) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await audit.stop()
        database.close()


@asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[tuple[Door, Counting, Confirmations]]:
    database = Database(folder / "gateway.db")
    store = Confirmations(database)
    audit = Audit(Trail(folder / "audit", KEY, size=1 << 20), KEY, "policy-1")
    agent = Counting()
    async with (
        closing(database, audit),
        agent.app() as app,
        opened(
            {"scout": app},
            tokens={"ui": UI, "phone": PHONE},
            own=OWN,
            fleet=FLEET,
            tenants=Tenants(GATEWAY.tenants),
            policy=Policy(GATEWAY, ["scout"]),
            gatekeeper=Gatekeeper(store, audit.confirmation),
            audit=audit,
        ) as door,
    ):
        door.web.timeout = 60
        yield door, agent, store


def tool_call(tool: str, **arguments: object) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": ABOUT}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


async def sent(door: Door, path: str, body: dict[str, Any], token: str = PHONE) -> dict[str, Any]:
    """Return the answer to a message of the stateless era."""
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
    }
    if body["method"] == "tools/call":
        headers |= {"mcp-method": "tools/call", "mcp-name": body["params"]["name"]}
    reply = await door.web.post(path, json=body, headers=headers)
    line = next((line for line in reply.text.splitlines() if line.startswith("data:")), reply.text)
    answer: dict[str, Any] = json.loads(line.removeprefix("data:"))
    return answer


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "data plane": ("/agents/scout/mcp", tool_call("echo", text="x")),
    "ask_agent": ("/mcp", tool_call("ask_agent", agent_uri="scout", tenant_id="acme", prompt="x")),
    "agent.execute": (
        "/mcp",
        {
            "method": "agent.execute",
            "params": {"agent_id": "scout", "function": "echo", "input": {"text": "x"}, "meta": {"task_id": "t1"}},
        },
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_runs_once_after_another_principal_confirmed_it(tmp_path: Path, way: str) -> None:
    path, body = WAYS[way]
    async with guarded(tmp_path) as (door, agent, store):
        first = (await sent(door, path, body))["error"]
        assert first["data"]["reason"] == "confirmation_required"
        assert 0 < first["data"]["expires_in"] <= 600
        assert agent.runs == 0
        assert await store.decide(first["data"]["confirmation"], "ui", "approved")
        assert "error" not in (await sent(door, path, body))
        assert agent.runs == 1
        again = (await sent(door, path, body))["error"]
        assert again["data"]["confirmation"] != first["data"]["confirmation"]
        assert agent.runs == 1
    lines = [line for file in (tmp_path / "audit").iterdir() for line in file.read_bytes().splitlines(keepends=True)]
    assert audit_check.check([("audit", lines)], KEY, whole=True).problems == []
    records = [json.loads(line) for line in lines]
    states = [record["state"] for record in records if record["event"] == "confirmation"]
    assert states == ["asked", "consumed", "asked"]
    outcomes = [record["reason"] for record in records if record["event"] == "outcome"]
    refused = [record["reason"] for record in records if record.get("decision") == "refuse"]
    assert Counter([*outcomes, *refused]) == {"answered": 1, "confirmation_required": 2}


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"inputResponses": {"sure": {"action": "accept"}}, "requestState": "s"}, None),
        ({"task": {"ttl": 1}}, None),
        ({"_meta": {**ABOUT, META_MODEL: "large"}}, {"_meta": {META_MODEL: "large"}}),
    ],
)
async def test_what_is_confirmed_is_all_that_the_agent_is_told(
    tmp_path: Path, more: dict[str, Any], shown: dict[str, Any] | None
) -> None:
    path, body = WAYS["data plane"]
    async with guarded(tmp_path) as (door, agent, store):
        first = (await sent(door, path, body))["error"]["data"]
        assert await store.decide(first["confirmation"], "ui", "approved")
        other = {**body, "params": {**body["params"], **more}}
        assert (await sent(door, path, other))["error"]["data"]["reason"] == "confirmation_required"
        (waiting,) = await store.pending("ui")
        assert (waiting["arguments"], waiting["more"], agent.runs) == ({"text": "x"}, shown or more, 0)
        another = {"_meta": {**ABOUT, "progressToken": 8, "traceparent": "00-1", META_SECONDS: "9"}}
        assert "error" not in await sent(door, path, {**body, "params": {**body["params"], **another}})
        assert agent.runs == 1


async def test_the_model_of_an_agent_is_confirmed_too(tmp_path: Path) -> None:
    path, body = WAYS["ask_agent"]
    with_model = tool_call("ask_agent", **body["params"]["arguments"], model="large")
    async with guarded(tmp_path) as (door, agent, store):
        first = (await sent(door, path, body))["error"]["data"]
        assert await store.decide(first["confirmation"], "ui", "approved")
        assert (await sent(door, path, with_model))["error"]["data"]["reason"] == "confirmation_required"
        (waiting,) = await store.pending("ui")
        assert (waiting["more"], agent.runs) == ({"_meta": {META_MODEL: "large"}}, 0)


async def test_a_limit_uses_up_no_confirmation(tmp_path: Path) -> None:
    path, body = WAYS["data plane"]
    async with guarded(tmp_path) as (door, agent, store):
        asked = (await sent(door, path, body))["error"]["data"]
        for _ in range(2):
            await sent(door, path, body)
        assert await store.decide(asked["confirmation"], "ui", "approved")
        reply = await sent(door, path, body)
        assert (reply["error"]["data"]["reason"], agent.runs) == ("rate", 0)
        assert await store.pending("ui") == []


async def test_calls_at_once_are_one_execution(tmp_path: Path) -> None:
    path, body = WAYS["data plane"]
    async with guarded(tmp_path) as (door, agent, store):
        asked = (await sent(door, path, body, UI))["error"]
        assert asked["data"]["reason"] == "confirmation_refused"  # nobody but ui itself may
        wanted = (await sent(door, path, body))["error"]["data"]
        assert await store.decide(wanted["confirmation"], "ui", "approved")
        replies = await asyncio.gather(*(sent(door, path, body) for _ in range(2)))
        assert sorted("error" in reply for reply in replies) == [False, True]
        assert agent.runs == 1


async def test_a_tool_without_a_rule_waits_for_nobody(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (door, agent, _):
        reply = await sent(door, "/agents/scout/mcp", tool_call("steps"))
        assert ("error" in reply, agent.runs) == (False, 1)

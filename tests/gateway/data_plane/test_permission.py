"""What a caller with grants gets of an agent through the data plane, and what others get: real clients of both eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from pallas_contract.fleet.access_model import Gateway
from pallas_gateway.data_plane import permission
from pallas_gateway.data_plane.message import Message, parse
from pallas_gateway.policy.policy import Policy
from pallas_service.access.caller import Caller
from tests.gateway.door import ERAS, MODERN, OWN, PHONE, UI, Agent, Door, opened, text

TOKENS = {"ui": UI, "phone": PHONE}
GRANTS = [
    {"caller": "ui", "agent": "scout", "tools": ["echo"], "paths": {"text": ["tasks/home/"]}},
    {"caller": "ui", "agent": "scout", "tools": ["st*"]},
    {"caller": "phone", "agent": "oracle", "tools": ["*"]},
]
HEADERS = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
ROUTES = [{"caller": "ui", "agent": "scout"}]


@asynccontextmanager
async def guarded(**keys: Any) -> AsyncIterator[Door]:
    scout = Agent()
    oracle = Agent("oracle")
    policy = Policy(Gateway.model_validate({"agents": ["scout", "oracle"], "grants": GRANTS, **keys}))
    # what is let through by mistake may wait for ever
    async with asyncio.timeout(120), scout.app() as first, oracle.app() as second:
        behind = {"scout": first, "oracle": second}
        async with opened(behind, tokens=TOKENS, own=OWN, policy=policy) as door:
            yield door


def call(tool: str, arguments: Any = None, **params: Any) -> dict[str, Any]:
    written = params if arguments is None else {"arguments": arguments, **params}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, **written}}


async def post(door: Door, path: str, message: Any, *, token: str = UI, **headers: str) -> tuple[int, Any]:
    head = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream", **headers}
    reply = await door.web.post(path, json=message, headers=head)
    return reply.status_code, reply.json()


async def reason(door: Door, path: str, message: Any, *, token: str = UI, **headers: str) -> str:
    _, body = await post(door, path, message, token=token, **headers)
    return str(body["error"]["data"]["reason"])


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_sees_and_calls_what_is_granted(era: str) -> None:
    async with guarded() as door:
        async with door.client("scout", era, UI) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == ["echo", "steps"]
            assert text(await client.call_tool("echo", {"text": "tasks/home/a"})) == "scout: tasks/home/a"
            with pytest.raises(MCPError) as refused:
                await client.call_tool("wait", {})
            assert (refused.value.error.code, refused.value.error.data) == (-32602, {"reason": "not_granted"})
        async with door.client("oracle", era, PHONE) as client:
            assert len((await client.list_tools()).tools) == 4
        outcomes = {record.outcome for record in door.noted.ended if record.call.method == "tools/call"}
        assert outcomes == {"answered", "not_granted"}


async def test_a_refused_call_reaches_nobody() -> None:
    async with guarded() as door:
        assert await post(door, "/agents/scout/mcp", call("echo", {"text": "../a"})) == (
            200,
            {
                "jsonrpc": "2.0",
                "id": 7,
                "error": {
                    "code": -32602,
                    "message": "the argument `text` is not in a folder that is granted",
                    "data": {"reason": "path_not_granted"},
                },
            },
        )
        assert await reason(door, "/agents/scout/mcp", call("echo", ["tasks/home/a"])) == "malformed"
        assert await reason(door, "/agents/scout/mcp", call("echo")) == "path_not_granted"
        # who has no grant hears the same as of an agent that is not there
        for agent in ("oracle", "nobody"):
            status, body = await post(door, f"/agents/{agent}/mcp", call("echo", {"text": "a"}))
            assert (status, body["error"]["code"]) == (404, -32001)
            assert body["error"]["message"] == f"there is no agent `{agent}` behind this gateway"
        assert (await door.web.get("/agents/oracle/mcp", headers={"authorization": f"Bearer {UI}"})).status_code == 404


async def test_one_address_leads_each_caller_to_its_agent() -> None:
    async with guarded(routes=ROUTES) as door:
        status, body = await post(door, "/agent/mcp", _listing(), **HEADERS)
        assert status == 200
        assert [tool["name"] for tool in body["result"]["tools"]] == ["echo", "steps"]
        assert body["result"]["cacheScope"] == "private"
        status, body = await post(door, "/agent/mcp", _listing(), token=PHONE, **HEADERS)
        assert (status, body["error"]["code"], body["error"]["data"]) == (404, -32001, {"reason": "no_route"})


def _listing() -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}


ATTACKS: Mapping[str, tuple[Any, dict[str, str], str]] = {
    "a caller in _meta": (
        call("wait", {}, _meta={"io.pallas-kit/tenant": "acme", "io.pallas-kit/user": "phone", "caller": "phone"}),
        {},
        "not_granted",
    ),
    "a caller in a header": (call("wait", {}), {"pallas-caller": "phone", "x-forwarded-user": "phone"}, "not_granted"),
    "a granted name in the header alone": (call("wait", {}), {"mcp-name": "steps"}, "header_mismatch"),
    "a free method in the header alone": (call("wait", {}), {"mcp-method": "tools/list"}, "header_mismatch"),
    "a name that looks like a granted one": (call("st\u0435ps", {}), {}, "not_granted"),
    "a name in full width": (call("\uff53\uff54\uff45\uff50\uff53", {}), {}, "not_granted"),
    "a name with a space": (call("steps ", {}), {}, "not_granted"),
    "a name with a line break": (call("steps\n", {}), {}, "not_granted"),
    "a name with a zero": (call("steps\x00", {}), {}, "not_granted"),
    "a name in upper case": (call("STEPS", {}), {}, "not_granted"),
    "a name that is none": (call(["steps"], {}), {}, "not_granted"),  # type: ignore[arg-type]
    "a name with the agent before it": (call("scout__wait", {}), {}, "not_granted"),
    "a path up": (call("echo", {"text": "tasks/home/../../etc"}), {}, "path_not_granted"),
    "a path up that is encoded": (call("echo", {"text": "tasks/home/%2e%2e/%2e%2e/etc"}), {}, "path_not_granted"),
    "a path up in full width": (call("echo", {"text": "tasks/home/\uff0e\uff0e/x"}), {}, "path_not_granted"),
    "a path in upper case": (call("echo", {"text": "TASKS/home/x"}), {}, "path_not_granted"),
    "a path beside another spelling of its key": (
        call("echo", {"text": "tasks/home/a", "TEXT": "/etc/passwd"}),
        {},
        "path_not_granted",
    ),
    "a path beside its key with a zero": (
        call("echo", {"text": "tasks/home/a", "text\0": "/etc/passwd"}),
        {},
        "path_not_granted",
    ),
    "a name beside another spelling of its key": (call("steps", {}, Name="wait"), {}, "malformed"),
    "a method in another spelling of its key": (
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "Method": "tools/call", "params": {"name": "wait"}},
        {},
        "malformed",
    ),
    "a name in an encoding that the server heeds": (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "steps", "+AG4AYQBtAGU-": "wait"}},
        {"content-type": "application/json; charset=utf-7"},
        "malformed",
    ),
    "a prompt": ({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "x"}}, {}, "not_granted"),
    "a resource": ({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "x"}}, {}, "not_granted"),
    "a method nobody knows": ({"jsonrpc": "2.0", "id": 1, "method": "tools/Call"}, {}, "not_granted"),
}


async def test_no_claim_and_no_spelling_gets_around_a_grant() -> None:
    async with guarded() as door:
        reasons = {
            name: await reason(door, "/agents/scout/mcp", message, **headers)
            for name, (message, headers, _) in ATTACKS.items()
        }
        assert reasons == {name: expected for name, (_, _, expected) in ATTACKS.items()}
        twice = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"steps","name":"wait"}}'
        head = {"authorization": f"Bearer {UI}", "content-type": "application/json"}
        reply = await door.web.post("/agents/scout/mcp", content=twice, headers=head)
        assert reply.json()["error"]["data"]["reason"] == "malformed"
        assert {record.outcome for record in door.noted.ended} <= {"not_granted", "path_not_granted"} | {
            "header_mismatch",
            "malformed",
        }


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("", None),
        ("initialize", None),
        ("ping", None),
        ("server/discover", None),
        ("notifications/cancelled", None),
        ("tools/list", None),
        ("prompts/list", None),
        ("tasks/result", None),
        ("subscriptions/listen", None),
        ("prompts/get", "not_granted"),
        ("resources/read", "not_granted"),
        ("resources/subscribe", "not_granted"),
        ("completion/complete", "not_granted"),
    ],
)
def test_a_session_belongs_to_whoever_has_a_grant(method: str, reason: str | None) -> None:
    policy = Policy(Gateway.model_validate({"agents": ["scout", "oracle"], "grants": GRANTS}))
    ui = Caller("ui", "", "t")
    phone = Caller("phone", "", "t")
    assert permission.decide(policy, ui, "scout", Message(method)).reason == reason
    assert permission.decide(policy, phone, "scout", Message(method)).reason == "unknown_agent"
    assert permission.decide(policy, phone, "oracle", Message(method)).reason is None


LISTENING = [{}, {"toolsListChanged": True}, {"resourceSubscriptions": []}]
TO_RESOURCES = [{"resourceSubscriptions": ["notes://a"]}, {"toolsListChanged": True, "ResourceSubscriptions": ["x"]}]


def listening(filters: Any) -> Message:
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": filters}}
    return parse(json.dumps(message).encode())


def test_who_may_call_tools_alone_listens_to_no_resources() -> None:
    policy = Policy(Gateway.model_validate({"agents": ["scout", "oracle"], "grants": GRANTS}))
    for filters in LISTENING:
        assert permission.decide(policy, Caller("ui", "", "t"), "scout", listening(filters)).verdict == "allowed"
    for filters in TO_RESOURCES:
        assert permission.decide(policy, Caller("ui", "", "t"), "scout", listening(filters)).reason == "not_granted"
        assert permission.decide(policy, Caller("phone", "", "t"), "oracle", listening(filters)).verdict == "allowed"


def test_to_listen_to_resources_is_confirmed_where_everything_is() -> None:
    for tools, verdict in (("*", "confirm"), ("delete_*", "allowed")):
        confirm = [{"agent": "scout", "tools": [tools], "by": ["phone"]}]
        policy = Policy(Gateway.model_validate({"agents": ["scout"], "confirm": confirm}))
        for filters in TO_RESOURCES:
            assert permission.decide(policy, Caller("ui", "", "t"), "scout", listening(filters)).verdict == verdict


@pytest.mark.parametrize("grants", [GRANTS, []])
def test_nobody_is_shown_the_tasks_of_others(grants: Any) -> None:
    policy = Policy(Gateway.model_validate({"agents": ["scout", "oracle"], "grants": grants}))
    # a member knows the gateway alone, so that its list has those of all callers
    for name, host in (("ui", "scout"), ("phone", "oracle")):
        assert permission.decide(policy, Caller(name, "", "t"), host, Message("tasks/list")).reason == "not_granted"
        assert permission.decide(policy, Caller(name, "", "t"), host, Message("tasks/get")).reason is None


def test_where_callers_are_not_told_apart_tasks_are_everybodys() -> None:
    assert permission.decide(Policy.open(), None, "scout", Message("tasks/list")).reason is None


async def test_what_must_be_confirmed_is_not_run() -> None:
    async with guarded(confirm=[{"agent": "scout", "tools": ["echo"], "by": ["phone"]}]) as door:
        message = call("echo", {"text": "tasks/home/a"})
        assert await reason(door, "/agents/scout/mcp", message) == "confirmation_required"


ALL = [{"agent": "scout", "tools": ["*"], "by": ["phone"]}]


@pytest.mark.parametrize(
    ("tools", "method", "verdict"),
    [
        ("delete_*", "ping", "allowed"),
        ("delete_*", "prompts/list", "allowed"),
        ("delete_*", "tasks/result", "allowed"),
        ("delete_*", "prompts/get", "allowed"),  # no tool, and not named
        ("delete_*", "tools/call_batch", "refused"),  # what it calls nobody knows
        ("delete_*", "agent.execute", "refused"),
        ("delete_*", "tools/Call", "refused"),
        ("*", "prompts/get", "confirm"),
        ("*", "resources/read", "confirm"),
        ("*", "completion/complete", "confirm"),
        ("*", "initialize", "allowed"),
    ],
)
def test_no_other_method_gets_around_a_confirmation(tools: str, method: str, verdict: str) -> None:
    policy = Policy(
        Gateway.model_validate(
            {"agents": ["scout", "oracle"], "confirm": [{"agent": "scout", "tools": [tools], "by": ["phone"]}]}
        )
    )
    ui = Caller("ui", "", "t")
    assert permission.decide(policy, ui, "scout", Message(method)).verdict == verdict
    assert permission.decide(policy, ui, "oracle", Message(method)).verdict == "allowed"


async def test_prompts_and_resources_are_confirmed_where_everything_is() -> None:
    async with guarded(grants=[], confirm=ALL) as door:
        for method, params in (("prompts/get", {"name": "echo"}), ("resources/read", {"uri": "notes://a"})):
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            assert await reason(door, "/agents/scout/mcp", message) == "confirmation_required"
            assert message["params"].items() <= parse(json.dumps(message).encode()).more.items()  # what is shown


async def test_a_tool_of_one_agent_does_not_shadow_that_of_another() -> None:
    grants = [
        {"caller": "ui", "agent": "scout", "tools": ["echo"]},
        {"caller": "ui", "agent": "oracle", "tools": ["steps"]},
    ]
    async with guarded(grants=grants, confirm=[{"agent": "oracle", "tools": ["steps"], "by": ["phone"]}]) as door:
        # both have all of these names; what is said of one is not said of the other
        assert await reason(door, "/agents/oracle/mcp", call("echo")) == "not_granted"
        assert await reason(door, "/agents/scout/mcp", call("steps")) == "not_granted"
        assert await reason(door, "/agents/oracle/mcp", call("steps")) == "confirmation_required"
        for tool in ("oracle__echo", "scout/echo", "scout.echo", "echo@oracle"):
            assert await reason(door, "/agents/scout/mcp", call(tool)) == "not_granted"
        async with door.client("scout", MODERN, UI) as client:
            assert text(await client.call_tool("echo", {"text": "a"})) == "scout: a"

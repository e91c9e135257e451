"""Registering and heartbeats as they are asked: the seed's messages to the letter, and every refusal in its shape."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pallas_registry.http.app import create_app
from tests.documentation import blocks, commands
from tests.examples import FUZZING, examples
from tests.registry.registration_client import CAPABILITIES, SEED, TOKENS, Open, admit, beat, leave, opened, register

pytestmark = pytest.mark.usefixtures("no_threads")


@pytest.fixture
async def desk(folder: Path, time):
    admit(folder)
    async with opened(folder, time) as found:
        yield found


async def test_the_seeds_messages_are_answered_in_the_seeds_form(desk: Open) -> None:
    reply = await desk.ask(SEED)
    assert (reply.status, reply.message) == (
        200,
        {
            "result": {
                "agent_id": "feature_extractor",
                "status": "registered",
                "heartbeat_interval": 60.0,
                "degraded_after": 120.0,
                "error_after": 240.0,
                "expires_after": 3600.0,
            }
        },
    )
    reply = await desk.ask(
        {"method": "agent.heartbeat", "params": {"agent_id": "feature_extractor", "status": "active"}}
    )
    assert (reply.status, reply.message["result"]["status"]) == (200, "ok")


async def test_the_messages_of_the_page_are_answered_as_it_says(desk: Open) -> None:
    """docs/registration.md: register, beat, leave, each a `curl -d`; the one answer it shows is that of the first."""
    page = blocks.of("registration")
    bodies = [
        command[command.index("-d") + 1] for block in page for command in commands.simple(block.text) if "-d" in command
    ]
    replies = [await desk.ask(body.encode()) for body in bodies]
    assert [reply.status for reply in replies] == [200, 200, 200]
    (shown,) = [json.loads(block.text) for block in page if block.language == "json"]
    assert replies[0].message == shown


async def test_json_rpc_is_answered_in_json_rpc(desk: Open) -> None:
    reply = await desk.ask({"jsonrpc": "2.0", "id": "a", **SEED})
    assert (reply.message["jsonrpc"], reply.message["id"]) == ("2.0", "a")
    refused = await desk.ask({"jsonrpc": "2.0", "id": 7, **leave("nobody")})
    assert (refused.message["jsonrpc"], refused.message["id"], refused.message["error"]["code"]) == ("2.0", 7, -32012)
    notified = await desk.ask({"jsonrpc": "2.0", **beat()})
    assert (notified.status, notified.message) == (202, None)


@pytest.mark.parametrize("number", [{}, [], True, 1.5, {"secret": "x"}], ids=str)
async def test_an_id_that_is_none_is_answered_with_null(desk: Open, number: object) -> None:
    """JSON-RPC 2.0, 5: Null where the id of the request cannot be told."""
    refused = await desk.ask({"jsonrpc": "2.0", "id": number, **SEED})
    assert (refused.status, refused.message["id"], refused.message["error"]["code"]) == (400, None, -32600)


async def test_who_registers_is_logged_once_with_the_token(desk: Open) -> None:
    with capture_logs() as lines:
        for _ in range(2):
            await desk.ask(register())
    registered = [line for line in lines if line["event"] == "agent registered"]
    assert registered == [
        {"event": "agent registered", "agent": "feature_extractor", "token": "partners", "log_level": "info"}
    ]


async def test_the_seeds_capability_example_is_taken(desk: Open) -> None:
    assert await desk.code(register("binance_agent"), "pricing") == (200, 0)


async def test_errors_have_the_seeds_shape(desk: Open) -> None:
    reply = await desk.ask(beat("unknown_one"))
    assert reply.message == {
        "error": {
            "code": -32012,
            "message": "unknown_one is not registered: call server.register first",
            "data": {"agent_id": "unknown_one"},
        }
    }
    reply = await desk.ask({"method": "agent.heartbeat", "params": {}})
    assert reply.message["error"]["data"]["agent_id"] == "unknown"


CAPS = CAPABILITIES
WRONG = {
    "no name": {"capabilities": CAPS},
    "name": {"agent_id": "No Host Name", "capabilities": CAPS},
    "number": {"agent_id": 7, "capabilities": CAPS},
    "no capabilities": {"agent_id": "a"},
    "no tools": {"agent_id": "a", "capabilities": {**CAPS, "tools": []}},
    "tools are text": {"agent_id": "a", "capabilities": {**CAPS, "tools": "fetch_ohlcv"}},
    "tool twice": {"agent_id": "a", "capabilities": {**CAPS, "tools": ["fetch_ohlcv", "fetch_ohlcv"]}},
    "tool without schema": {"agent_id": "a", "capabilities": {**CAPS, "tools": ["fetch_ohlcv", "other"]}},
    "schema without tool": {"agent_id": "a", "capabilities": {**CAPS, "schema": {**CAPS["schema"], "x": {}}}},
    "schema without output": {"agent_id": "a", "capabilities": {"tools": ["t"], "schema": {"t": {"input": {}}}}},
    "no schema": {"agent_id": "a", "capabilities": {"tools": ["t"]}},
    "constraints": {"agent_id": "a", "capabilities": {**CAPS, "constraints": [1]}},
    "interval": {"agent_id": "a", "capabilities": CAPS, "heartbeat_interval": 0.5},
    "interval text": {"agent_id": "a", "capabilities": CAPS, "heartbeat_interval": "60"},
    "interval truth": {"agent_id": "a", "capabilities": CAPS, "heartbeat_interval": True},
    "unknown key": {"agent_id": "a", "capabilities": CAPS, "token": "x"},
    "title of two lines": {"agent_id": "a", "capabilities": CAPS, "title": "a\nb"},
    "text that turns round": {"agent_id": "a", "capabilities": CAPS, "description": "\u202etxt.exe"},
    "url": {"agent_id": "a", "capabilities": CAPS, "url": "file:///etc/passwd"},
    "url with credentials": {"agent_id": "a", "capabilities": CAPS, "url": "http://a:b@c/mcp"},
    "url without labels": {"agent_id": "a", "capabilities": CAPS, "url": "http://a..b/mcp"},
    "url with a long label": {"agent_id": "a", "capabilities": CAPS, "url": f"http://{'a' * 64}/mcp"},
    "url of half an address": {"agent_id": "a", "capabilities": CAPS, "url": "http://[::1/mcp"},
    "url port": {"agent_id": "a", "capabilities": CAPS, "url": "http://c:99999/mcp"},
    "a list": [1],
    "nothing": None,
}


@pytest.mark.parametrize("params", WRONG.values(), ids=WRONG)
async def test_wrong_parameters_are_told_and_change_nothing(desk: Open, params: object) -> None:
    reply = await desk.ask({"method": "server.register", "params": params})
    assert (reply.status, reply.message["error"]["code"]) == (400, -32602)
    assert reply.message["error"]["data"]["problems"]
    assert not (await desk.service.monitor.metrics.scrape(""))[0].count(b'agent="a"')


async def test_problems_name_their_fields(desk: Open) -> None:
    reply = await desk.ask(register("x", heartbeat_interval=9999, capabilities={"tools": ["t"], "schema": {"t": {}}}))
    fields = [each["field"] for each in reply.message["error"]["data"]["problems"]]
    assert fields == ["capabilities.schema.t.input", "capabilities.schema.t.output", "heartbeat_interval"]


@pytest.mark.parametrize("status", ["asleep", "", 1, None])
async def test_a_heartbeat_has_a_status_that_is_known(desk: Open, status: object) -> None:
    await desk.ask(SEED)
    assert await desk.code(beat(status=status)) == (400, -32602)


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong-token-0123456789"}, {"authorization": f"Basic {TOKENS['partners']}"}],
    ids=["none", "wrong", "basic"],
)
async def test_without_a_known_token_nothing_happens(desk: Open, headers: dict[str, str]) -> None:
    reply = await desk.service.backend("run").mcp(headers, json.dumps(SEED).encode())
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert reply.message["error"]["code"] == -32010
    assert await desk.code(beat()) == (404, -32012)


async def test_a_token_speaks_for_its_own_agents_only(desk: Open) -> None:
    assert await desk.code(register("binance_agent"), "partners") == (403, -32011)  # bound to another token
    assert await desk.code(register("binance-agent"), "partners") == (403, -32011)  # the same host name
    assert await desk.code(register("feature_extractor"), "pricing") == (403, -32011)  # this one is bound
    assert await desk.code(register("binance_agent"), "pricing") == (200, 0)
    for message in (beat("binance_agent"), leave("binance_agent"), register("binance_agent")):
        assert await desk.code(message, "partners") == (403, -32011)


async def test_a_token_without_bounds_does_not_take_what_another_has(folder: Path, time) -> None:
    admit(
        folder,
        "registry: {registration: {tokens: {partners: {file: partners.token}, pricing: {file: pricing.token}}}}\n",
    )
    async with opened(folder, time) as desk:
        assert await desk.code(SEED, "pricing") == (200, 0)
        for message in (SEED, beat(), leave()):
            assert await desk.code(message, "partners") == (403, -32011)
        assert await desk.code(leave(), "pricing") == (200, 0)
        assert await desk.code(SEED, "partners") == (200, 0)


@pytest.mark.parametrize("name", ["harper", "tech_research", "tech-research", "registry", "agents"])
async def test_names_of_the_file_and_of_the_kit_cannot_be_taken(desk: Open, name: str) -> None:
    assert await desk.code(register(name)) == (403, -32011)
    assert desk.service.monitor.recheck  # the service goes on
    assert [change for change in desk.changes if change[2] != "ok"] == []


async def test_a_host_name_is_one_agents(desk: Open) -> None:
    assert await desk.code(register("a_b")) == (200, 0)
    assert await desk.code(register("a-b")) == (403, -32011)


async def test_no_more_than_the_file_allows(desk: Open) -> None:
    for name in ("a", "b", "c"):
        assert await desk.code(register(name)) == (200, 0)
    assert await desk.code(register("d")) == (409, -32014)
    assert await desk.code(register("a")) == (200, 0), "again is not more"
    await desk.ask(leave("b"))
    assert await desk.code(register("d")) == (200, 0)


async def test_who_asks_too_often_is_told_when_to_come_back(desk: Open, time) -> None:
    await desk.ask(SEED)
    codes = [await desk.ask(beat()) for _ in range(12)]
    assert [reply.status for reply in codes] == [200] * 10 + [429] * 2
    assert (codes[-1].headers["retry-after"], codes[-1].message["error"]["code"]) == ("1", -32013)
    await time.advance(1)
    assert (await desk.ask(beat())).status == 200
    statuses = [(await desk.ask(SEED)).status for _ in range(60)]
    assert statuses.index(429) in range(49, 56)
    guesses = [(await desk.service.backend("r").mcp({}, json.dumps(SEED).encode())).status for _ in range(60)]
    assert (guesses[0], guesses[-1]) == (401, 429)
    assert (await desk.ask(beat())).status == 200, "guessing shuts nobody out"


async def test_another_token_does_not_use_up_the_heartbeats_of_an_agent(folder: Path, time) -> None:
    admit(
        folder,
        "registry: {registration: {tokens: {partners: {file: partners.token}, pricing: {file: pricing.token}}}}\n",
    )
    async with opened(folder, time) as desk:
        await desk.ask(SEED, "pricing")
        stranger = [await desk.code(beat(), "partners") for _ in range(20)]
        assert stranger == [(403, -32011)] * 10 + [(429, -32013)] * 10
        for message in (beat(), SEED, leave()):
            assert await desk.code(message, "pricing") == (200, 0)


def nested(levels: int) -> list:
    return [nested(levels - 1)] if levels else []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
VALID = {
    "agent_id": st.sampled_from(["a", "b", "harper"]),
    "status": st.just("active"),
    "capabilities": st.just(CAPABILITIES),
}
PARAMS = st.sampled_from(
    [["agent_id"], ["agent_id", "capabilities"], ["agent_id", "status"], ["agent_id", "capabilities", "status"]]
).flatmap(lambda keys: st.fixed_dictionaries({key: VALID[key] | VALID[key] | JSON for key in keys}))
KEYS = st.sampled_from(["agent_id", "capabilities", "heartbeat_interval", "status", "url", "title", "_meta", "message"])
METHODS = st.sampled_from(["server.register", "server.deregister", "agent.heartbeat", "tools/call", "initialize", "x"])
MESSAGES = st.fixed_dictionaries(
    {"method": METHODS},
    optional={
        "params": PARAMS | PARAMS | st.dictionaries(KEYS, JSON) | JSON,
        "id": st.integers() | JSON,
        "jsonrpc": st.just("2.0") | JSON,
    },
)


@pytest.mark.fuzz
async def test_whatever_is_posted_the_answer_is_json_and_no_500(desk: Open, time) -> None:
    """Bodies that begin like ours or MCP's and go wrong anywhere; and what Python reads as JSON though it is none."""
    app, seen = create_app(desk.service.backend("run")), set()
    headers = {"authorization": f"Bearer {TOKENS['partners']}"}
    deep = json.dumps(register("deep", capabilities={**CAPABILITIES, "constraints": {"x": nested(20)}})).encode()
    flat = json.dumps(register("deep", capabilities={**CAPABILITIES, "constraints": {"x": nested(10)}})).encode()
    bodies: list[bytes] = [b"[" * 60_000, b'{"method":"server.register","params":' + b'{"a":' * 900 + b"1" + b"}" * 901]
    bodies += [json.dumps(register(title="\ud800")).encode(), b'{"method":"agent.heartbeat","params":{"a":NaN}}']
    bodies += [b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', b"\xff", b""]
    bodies += [json.dumps({"method": each, "params": {}}).encode() for each in ([], {}, None, 7)]
    bodies += [json.dumps(beat("\ud800")).encode(), json.dumps({**beat(), "id": "\ud800"}).encode()]
    odd = {**CAPABILITIES, "constraints": {"x": float("nan"), "y": float("inf"), "z": "\ud800"}}
    bodies += [json.dumps(register("b", capabilities=odd)).encode()]
    bodies += [json.dumps(message).encode() for message in (register("c"), beat("nobody"))]

    @settings(
        max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck), derandomize=not FUZZING
    )
    @given(message=MESSAGES)
    def collect(message: object) -> None:
        bodies.append(json.dumps(message).encode())

    collect()
    transport = httpx.ASGITransport(app)  # raises what the application raises
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        for body in bodies:
            time.seconds += 1  # so that nobody asks too often
            reply = await client.post("/mcp", content=body)
            seen.add(reply.status_code)
            assert reply.status_code == 202 or reply.json().keys() & {"result", "error"}, body
        assert [(await client.post("/mcp", content=body)).status_code for body in (flat, deep)] == [200, 400]
        assert (await client.post("/mcp", content=b" " * 65_537)).status_code == 413
    assert {200, 400, 404} <= seen <= {200, 202, 400, 403, 404, 409}


async def test_nobody_may_register_unless_the_file_says_so(folder: Path, time) -> None:
    async with opened(folder, time) as service:
        for message in (SEED, beat(), leave()):
            reply = await service.ask({"jsonrpc": "2.0", "id": 1, **message})
            assert (reply.status, reply.message["error"]["code"]) == (200, -32601)
            assert (await service.code(message)) == (400, -32600), "without the fields of JSON-RPC it is no request"

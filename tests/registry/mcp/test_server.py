"""The registry as an MCP server: for the SDK's own client in both eras, and for clients that cannot be trusted."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import uvicorn
from mcp import Client

from pallas_contract.documents.reason import Reason
from pallas_contract.probe import probe
from pallas_contract.probe.probe import Result
from pallas_registry import fleet_file
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.http.app import create_app
from pallas_registry.mcp import server as mcp_server
from pallas_registry.mcp.server import McpServer
from pallas_registry.service import Service
from pallas_registry.settings import read
from pallas_registry.state.agents import AgentStates, MemberStates
from pallas_registry.state.history import History
from pallas_registry.status_page import overview

MODERN = "2026-07-28"
BARE = {"io.modelcontextprotocol/protocolVersion": MODERN}
META = {**BARE, "io.modelcontextprotocol/clientCapabilities": {}}
CALL = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call"}


class Fleet:
    undeclared: tuple[str, ...] = ()

    async def sweep(self, agents, tell) -> None:
        for agent in agents:
            tell(agent, Sighting((Endpoint(f"http://{agent}/mcp", "10.0.0.1"),)))

    async def check(self, endpoint: Endpoint, _before: Result | None) -> Result:
        return (
            Result("ok")
            if "harper" in endpoint.url
            else Result("degraded", Reason("Unreachable", "Unreachable: neo4j"))
        )


@pytest.fixture
async def url(folder: Path) -> AsyncIterator[str]:
    """The registry's MCP endpoint, served on loopback."""
    follower, fleet = FleetWatcher(folder / "agents.yaml"), Fleet()
    service = Service(read({}), follower.first(), follower, Dependencies(discovery=fleet, check=fleet.check))
    server = uvicorn.Server(uvicorn.Config(create_app(service.backend(run="t")), lifespan="off", log_config=None))
    server.capture_signals = suppress
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tasks = [asyncio.create_task(service.run()), asyncio.create_task(server.serve(sockets=[listener]))]
        while service.monitor.waiting():
            await service.monitor.history.wait(service.monitor.history.rings)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        server.should_exit = True
        tasks[0].cancel()
        with suppress(asyncio.CancelledError):
            await tasks[0]
        await tasks[1]


@pytest.mark.parametrize("era", ["auto", "legacy", MODERN])
async def test_the_sdks_client(url: str, era: str) -> None:
    async with Client(url, mode=era) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["find_agent", "get_health", "list_agents"]
        said = (await client.call_tool("get_health", {})).structured_content
        assert (said["status"], said["message"]) == ("degraded", "tech_research: Unreachable: neo4j")
        listed = (await client.call_tool("list_agents", {})).structured_content["agents"]
        assert [(agent["name"], agent["status"]) for agent in listed] == [
            ("harper", "ok"),
            ("tech_research", "degraded"),
        ]
        found = await client.call_tool("find_agent", {"query": "ASSIST"})
        assert json.loads(found.content[0].text)["agents"][0]["url"] == "http://my-host.example.com:8201/mcp"
        wrong = await client.call_tool("find_agent", {})
        assert (wrong.is_error, wrong.content[0].text) == (True, "find_agent takes query as text")


@pytest.mark.usefixtures("patient")
async def test_our_own_prober_finds_it_as_it_finds_agents(url: str) -> None:
    result = await probe.probe(probe.Target(url, deep=True, tools=True))
    assert (result.state, result.era, result.name) == ("degraded", MODERN, "pallas-registry")
    assert list(result.tools) == ["find_agent", "get_health", "list_agents"]


async def test_other_sites_and_methods_and_sizes(url: str) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        assert (await client.post(url, headers={"origin": "http://evil.example"}, json={})).status_code == 403
        assert (await client.get(url)).status_code == (await client.delete(url)).status_code == 405
        large = await client.post(url, content=b"x" * (mcp_server.LIMIT + 1))
        assert (large.status_code, large.json()) == (413, {"error": "a request has at most 64 KiB"})
        rebound = {"origin": "http://evil.example:80", "host": "evil.example:80"}
        assert (await client.post(url, headers=rebound, json={})).status_code == 403
        own = {"origin": url.removesuffix("/mcp")}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await client.post(url, headers=own, json=ping)).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert (
            await client.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        ).status_code == 202


@pytest.fixture
def ask(folder: Path, time):
    """`ask(method, params, **headers)`: status and error code of the answer."""
    loaded, history = fleet_file.load(folder / "agents.yaml"), History()
    agent_states = AgentStates(clock=time.clock, now=time.now, on_change=history.record, on_update=lambda: None)
    agent_states.expect(list(loaded.fleet.agents))
    states = MemberStates(agent_states, agent_states)

    def look() -> overview.Overview:
        return overview.gather(loaded, "container", states, history, now=time.now(), config_ok=True)

    def run(method: str, params: object = None, **headers: str) -> tuple[int, dict]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method} | ({"params": params} if params is not None else {})
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return answer(named, json.dumps(message).encode(), look)

    return run


def answer(headers: dict[str, str], body: bytes, look: Callable[[], overview.Overview]) -> tuple[int, dict]:
    """Return status and message of the answer where nobody may register."""
    response = asyncio.run(McpServer(look, dict).answer(headers, body))
    return response.status, response.message


def modern(**params: object) -> dict:
    return {**params, "_meta": META}


@pytest.mark.parametrize(
    ("method", "params", "headers", "status", "code"),
    [
        ("server/discover", modern(), {"mcp_protocol_version": "2025-11-25"}, 400, -32020),
        ("server/discover", modern(), {}, 400, -32020),
        ("tools/list", modern(), {"mcp_protocol_version": MODERN, "mcp_method": "tools/call"}, 400, -32020),
        ("tools/list", modern(), {"mcp_protocol_version": MODERN}, 400, -32020),
        ("tools/call", modern(name="list_agents"), {**CALL, "mcp_name": "other"}, 400, -32020),
        ("tools/call", modern(name="list_agents"), CALL, 400, -32020),
        ("tools/list", {}, {"mcp_protocol_version": MODERN, "mcp_method": "tools/list"}, 400, -32602),
        ("tools/list", {"_meta": {}}, {"mcp_protocol_version": MODERN, "mcp_method": "tools/list"}, 400, -32602),
        ("tools/list", {"_meta": BARE}, {"mcp_protocol_version": MODERN, "mcp_method": "tools/list"}, 400, -32602),
        ("server/discover", {}, {"mcp_protocol_version": "2031-01-01"}, 400, -32602),
        ("initialize", modern(), {"mcp_protocol_version": MODERN, "mcp_method": "initialize"}, 404, -32601),
        ("nothing", modern(), {"mcp_protocol_version": MODERN, "mcp_method": "nothing"}, 404, -32601),
        ("server/discover", None, {}, 200, -32601),
        ("tools/call", modern(name="nobody"), {**CALL, "mcp_name": "nobody"}, 400, -32602),
        ("tools/call", {"name": 7}, {}, 200, -32602),
        ("tools/call", {"name": "list_agents", "arguments": [1]}, {}, 200, -32602),
        ("ping", [1], {}, 400, -32602),
    ],
)
def test_refusals(ask, method: str, params: object, headers: dict[str, str], status: int, code: int) -> None:
    found, reply = ask(method, params, **headers)
    assert (found, reply["error"]["code"], reply["id"]) == (status, code, 1)


def test_space_around_a_header_is_not_part_of_it(ask) -> None:
    headers = {"mcp_protocol_version": f"{MODERN} ", "mcp_method": " tools/call", "mcp_name": "\tget_health "}
    status, reply = ask("tools/call", modern(name="get_health"), **headers)
    assert (status, reply["result"]["isError"]) == (200, False)


@pytest.mark.parametrize(
    ("origin", "refused"),
    [
        (None, False),
        ("http://registry:8080", False),
        ("https://registry", False),
        ("http://registry.evil.example", True),
        ("http://other:8080", True),
        ("http://plain:8080", True),
        ("ftp://registry", True),
        ("null", True),
        ("", True),
    ],
)
def test_origins(origin: str | None, refused: bool) -> None:
    assert mcp_server.foreign(origin, ("registry", "registry:*", "plain")) is refused


def test_an_unknown_version_is_told_which_are_known(ask) -> None:
    params = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}}
    status, reply = ask("server/discover", params, mcp_protocol_version="2031-01-01")
    assert (status, reply["error"]["code"], reply["error"]["data"]["supported"]) == (400, -32022, [MODERN])


@pytest.mark.parametrize("asked", ["2025-03-26", "2024-11-05", "1999-01-01", None, 7])
def test_initialize_agrees_on_a_version(ask, asked: object) -> None:
    _, reply = ask("initialize", {"protocolVersion": asked})
    assert reply["result"]["protocolVersion"] == (asked if isinstance(asked, str) and asked > "2" else "2025-11-25")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    ],
)
def test_what_is_no_request(body: bytes, code: int) -> None:
    status, reply = answer({}, body, lambda: None)
    assert (status, reply["error"]["code"]) == (400, code)


def test_before_the_first_probe_the_fleet_is_degraded(ask) -> None:
    _, reply = ask("tools/call", {"name": "get_health"})
    said = reply["result"]["structuredContent"]
    assert (said["status"], said["message"]) == ("degraded", "2 not known yet")

"""A fleet whose agents ask for tokens: in containers and as processes it is healthy, and answers its callers only.

In containers an agent outside of it, on the host, registers with it and outlives its registry.

harper and research answer with the question; `***CALL_TOOL name {...}` makes such an agent call a tool.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pallas_contract.documents import server_json
from pallas_contract.probe import http_client
from pallas_testing.fleet import Fleet, start
from pallas_testing.fleet.start import Running
from pallas_testing.targets.base import Order

from . import scenario
from .local import PATIENCE
from .registration import CAPABILITIES, TOKEN, outside, say
from .stack import Stack

UI, HARPER = "ui-token-of-this-test-only", "harper-token-of-this-test-only"
GATEWAY = "gateway-token-of-this-test-only"
BEHIND = "/agents/harper/mcp"
FLEET = """\
name: access-e2e
networks: {pool: 10.213.0.0/16}
registry:
  probe_interval: 0.5
  registration:
    tokens: {partners: {file: keys/partners}}
    store: true
    reach: [10.213.0.0/16]
access:
  tokens:
    ui: {file: secrets/ui.token}
    harper: {file: secrets/harper.token}
    gateway: {file: secrets/gateway.token}
gateway:
  port: 24703
  agents: [harper]
agents:
  harper:
    card: agents/harper.md
    port: 24701
    depends_on: [research]
  research:
    card: agents/research.md
    port: 24702
    through: gateway
"""
"""The host is the gateway of each network in the pool."""
CALLS = {"harper": "research", "research": ""}
CARD = """\
---
type: agent
name: {name}
model: passthrough
servers: [{servers}]
---
You are {name}.
"""


@pytest.fixture(
    scope="module",
    params=[pytest.param("processes", marks=pytest.mark.slow), pytest.param("compose", marks=pytest.mark.docker)],
)
def running_fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The fleet, up and well on each target."""
    project = tmp_path_factory.mktemp("access")
    files = {"secrets/ui.token": UI, "secrets/harper.token": HARPER, "secrets/gateway.token": GATEWAY}
    files |= {"keys/partners": TOKEN, "agents.yaml": FLEET}
    files |= {f"agents/{name}.md": CARD.format(name=name, servers=calls) for name, calls in CALLS.items()}
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"{text.rstrip()}\n")
    with start.running(
        request.param, Order(project / "agents.yaml", tmp_path_factory.mktemp("running")), {}
    ) as running:
        yield running


async def test_it_is_healthy_and_answers_its_callers_only(fleet: Fleet, running_fleet: Running) -> None:
    members = ("registry", "harper", "research", "gateway")
    await healthy_and_closed({name: fleet.url(name) for name in members if name != "research"})
    if fleet.target == "processes":  # elsewhere it has no address
        await closed(f"{fleet.url('research')}/mcp", {"authorization": f"Bearer {UI}"})
    assert probed(f"{fleet.url('harper')}/mcp").startswith("unauthenticated")
    assert probed(f"{fleet.url('harper')}/mcp", "--token-file", fleet.folder / "secrets/ui.token").startswith("ok")
    places = "".join(map(fleet.logs, members))
    if fleet.target == "compose":
        places += json.dumps([container.attrs for container in Stack(running_fleet).containers().values()])
        places += (fleet.folder / "compose.yaml").read_text()
    assert places
    assert not any(token in places for token in (UI, HARPER, GATEWAY))


async def healthy_and_closed(urls: dict[str, str]) -> None:
    """The registry shows every agent as well; the caller with a token gets through both, the one without to none.

    `harper` calls `research` through the gateway, and finds it well there.
    """
    await scenario.until_states(urls["registry"], {"harper": "ok", "research": "ok"}, within=PATIENCE)
    await closed(f"{urls['harper']}/mcp")
    for era in scenario.ERAS:
        delegated = f'***CALL_TOOL research__research {{"message": "hello from {era}"}}'
        assert f"hello from {era}" in await ask(f"{urls['harper']}/mcp", era, delegated)
    await through_the_gateway(urls["gateway"], urls["registry"])


async def through_the_gateway(gateway: str, registry: str) -> None:
    """It asks for the caller's token, leads to the agent that it names in both eras, and to no other."""
    await closed(gateway + BEHIND)
    for era in scenario.ERAS:
        assert f"guarded {era}" in await ask(gateway + BEHIND, era, f"guarded {era}")
    message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    bearer = {"authorization": f"Bearer {UI}"}
    other = await http_client.request("POST", f"{gateway}/agents/research/mcp", headers=bearer, body=message)
    assert (other.status, json.loads(other.body)["error"]["data"]["reason"]) == (404, "unknown_agent")
    own = await http_client.request(
        "POST", gateway + BEHIND, headers={"authorization": f"Bearer {GATEWAY}"}, body=message
    )
    assert own.status == 401  # what it shows to agents lets nobody in
    async with asyncio.timeout(PATIENCE):
        while await followed(registry) != [("gateway", "ok")]:
            await asyncio.sleep(0.2)


async def followed(registry: str) -> list[tuple[str, str]]:
    """Return what the registry follows beside the agents, with its state."""
    document = json.loads((await http_client.request("GET", f"{registry}/services")).body)
    return [(entry["name"], entry["status"]) for entry in document["services"]]


async def closed(url: str, headers: Mapping[str, str] | None = None) -> None:
    """Who shows no token that is accepted is told to get one."""
    reply = await http_client.request("POST", url, headers=headers or {}, body=b"{}")
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Bearer ")


def probed(*arguments: str | Path) -> str:
    """What `pallas-gen probe` says."""
    command = [Path(sys.executable).with_name("pallas-gen"), "probe", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


async def ask(url: str, era: str, message: str, token: str = UI) -> str:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as web,
        Client(streamable_http_client(url, http_client=web), mode=era) as client,
    ):
        result = await client.call_tool("send_message", {"message": message})
    text = "\n".join(getattr(block, "text", "") for block in result.content)
    assert not result.is_error, text
    return text


@pytest.mark.parametrize("running_fleet", ["compose"], indirect=True)
@pytest.mark.docker
async def test_an_agent_outside_of_the_fleet_registers_is_probed_and_outlives_the_registry(running_fleet):
    stack = Stack(running_fleet)
    networks = stack.container("registry").attrs["NetworkSettings"]["Networks"]
    gateway = networks[f"{stack.project}_registry"]["Gateway"]
    async with outside() as port:
        about = {"capabilities": CAPABILITIES, "heartbeat_interval": 2, "url": f"http://{gateway}:{port}/mcp"}
        assert (await say(stack, "server.register", **about))[0] == 200
        await scenario.until_states(stack.url("registry"), {"feature-extractor": "ok"}, within=60)
        entry = (await scenario.catalogue(stack.url("registry")))["feature-extractor"]
        assert entry["_meta"][server_json.REGISTRATION_META]["schema"] == CAPABILITIES["schema"]
        status, refused = await say(stack, "server.register", **{**about, "url": "http://169.254.169.254/mcp"})
        assert (status, refused["error"]["code"]) == (400, -32602)

        stack.kill("registry")
        stack.start("registry")
        await scenario.until_states(stack.url("registry"), {"feature-extractor": "unknown"}, within=60)
        assert (await say(stack, "agent.heartbeat", status="active"))[0] == 200
        await scenario.until_states(stack.url("registry"), {"feature-extractor": "ok"}, within=60)
        stack.container("registry").remove(force=True)
        stack.up()
        assert (await say(stack, "agent.heartbeat", status="active"))[0] == 200
        await scenario.until_states(stack.url("registry"), {"feature-extractor": "ok"}, within=60)
    await say(stack, "agent.heartbeat", status="active")
    await scenario.until_states(stack.url("registry"), {"feature-extractor": "error"}, within=60)

    assert (await say(stack, "server.deregister"))[0] == 200
    assert "feature-extractor" not in await scenario.states(stack.url("registry"))
    registry = stack.container("registry")
    assert TOKEN not in str(registry.attrs)
    assert stack.python("registry", "print(open('/run/secrets/registration-partners').read())") == TOKEN
    assert stack.python("registry", "print(__import__('os').path.exists('/project/keys'))") == "False"
    writable = [mount["Destination"] for mount in registry.attrs["Mounts"] if mount["RW"]]
    assert writable == ["/state"]
    assert registry.attrs["HostConfig"]["ReadonlyRootfs"] is True

"""A fleet whose agents ask for tokens: in containers and as processes it is healthy, and answers its callers only.

harper and research answer with the question; `***CALL_TOOL name {...}` makes such an agent call a tool.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pallas_contract.probe import http_client
from tests.ports import free_ports, pool

from . import scenario
from .stack import running
from .test_local import PATIENCE, Pallas

UI, HARPER = "ui-token-of-this-test-only", "harper-token-of-this-test-only"
GATEWAY = "gateway-token-of-this-test-only"
BEHIND = "/agents/harper/mcp"
FLEET = """\
name: access-e2e-{pid}
registry_port: {ports[0]}
networks: {{pool: {pool}}}
registry: {{probe_interval: 0.5}}
access:
  tokens:
    ui: {{file: secrets/ui.token}}
    gateway: {{file: secrets/gateway.token}}
gateway:
  port: {ports[3]}
  agents: [harper]
agents:
  harper:
    card: agents/harper.md
    port: {ports[1]}
    depends_on: [research]
  research:
    card: agents/research.md
    port: {ports[2]}
    access: {{tokens: {{harper: {{file: secrets/harper.token}}}}}}
"""
CARD = """\
---
type: agent
name: {name}
model: passthrough
servers: [{servers}]
---
You are {name}.
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The fleet's agents.yaml, in a folder with cards and tokens that the containers' user may enter."""
    project = tmp_path / "project"
    for folder in ("agents", "secrets"):
        (project / folder).mkdir(parents=True)
    for name, servers in (("harper", "research"), ("research", "")):
        (project / "agents" / f"{name}.md").write_text(CARD.format(name=name, servers=servers))
    for name, token in (("ui", UI), ("harper", HARPER), ("gateway", GATEWAY)):
        (project / "secrets" / f"{name}.token").write_text(f"{token}\n")
    path = project / "agents.yaml"
    path.write_text(FLEET.format(pid=os.getpid(), ports=free_ports(4), pool=pool()))
    return path


@pytest.mark.docker
async def test_in_containers(config: Path) -> None:
    with running(config) as stack:  # up and healthy, in start order, or it raises
        await healthy_and_closed({name: stack.url(name) for name in ("registry", "harper", "research", "gateway")})
        assert probed(f"{stack.url('harper')}/mcp").startswith("unauthenticated")
        assert probed(f"{stack.url('harper')}/mcp", "--token-file", config.parent / "secrets/ui.token").startswith("ok")
        told = json.dumps([container.attrs for container in stack.containers().values()]) + stack.logs()
    assert UI not in told + (config.parent / "compose.yaml").read_text()
    assert HARPER not in told
    assert GATEWAY not in told


@pytest.mark.slow
async def test_as_processes(config: Path, tmp_path: Path) -> None:
    fleet = Pallas(config, tmp_path / "pallas.log")
    try:
        urls = {name: fleet.url(name) for name in ("registry", "harper", "research")}
        urls["gateway"] = f"http://127.0.0.1:{yaml.safe_load(config.read_text())['gateway']['port']}"
        await healthy_and_closed(urls)
        assert not any(token in fleet.said for token in (UI, HARPER, GATEWAY))
    finally:
        await asyncio.to_thread(stop, fleet)


def stop(fleet: Pallas) -> None:
    fleet.process.kill()  # its children die with it
    fleet.process.wait()


async def healthy_and_closed(urls: dict[str, str]) -> None:
    """The registry shows every agent as well; the caller with a token gets through both, the one without to none."""
    await scenario.until_states(urls["registry"], {"harper": "ok", "research": "ok"}, within=PATIENCE)
    for name in ("harper", "research"):
        await closed(f"{urls[name]}/mcp")
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


async def closed(url: str) -> None:
    """Who shows no token is told to get one."""
    reply = await http_client.request("POST", url, body=b"{}")
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

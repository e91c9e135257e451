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
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pallas_contract.probe import http_client
from tests.ports import free_ports, pool

from . import scenario
from .stack import running
from .test_local import PATIENCE, Pallas

UI, HARPER = "ui-token-of-this-test-only", "harper-token-of-this-test-only"
FLEET = """\
name: access-e2e-{pid}
registry_port: {ports[0]}
networks: {{pool: {pool}}}
registry: {{probe_interval: 0.5}}
access:
  tokens:
    ui: {{file: secrets/ui.token}}
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
    for name, token in (("ui", UI), ("harper", HARPER)):
        (project / "secrets" / f"{name}.token").write_text(f"{token}\n")
    path = project / "agents.yaml"
    path.write_text(FLEET.format(pid=os.getpid(), ports=free_ports(3), pool=pool()))
    return path


@pytest.mark.docker
async def test_in_containers(config: Path) -> None:
    with running(config) as stack:  # up and healthy, in start order, or it raises
        await healthy_and_closed({name: stack.url(name) for name in ("registry", "harper", "research")})
        assert probed(f"{stack.url('harper')}/mcp").startswith("unauthenticated")
        assert probed(f"{stack.url('harper')}/mcp", "--token-file", config.parent / "secrets/ui.token").startswith("ok")
        told = json.dumps([container.attrs for container in stack.containers().values()]) + stack.logs()
    assert UI not in told + (config.parent / "compose.yaml").read_text()
    assert HARPER not in told


@pytest.mark.slow
async def test_as_processes(config: Path, tmp_path: Path) -> None:
    fleet = Pallas(config, tmp_path / "pallas.log")
    try:
        urls = {name: fleet.url(name) for name in ("registry", "harper", "research")}
        await healthy_and_closed(urls)
        assert not any(token in fleet.said for token in (UI, HARPER))
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

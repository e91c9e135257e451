"""An agent outside of the fleet, on the host, registers with a fleet in containers and outlives its registry."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pallas_contract.documents import server_json
from pallas_contract.probe import http_client

from . import scenario
from .projects import copy_example
from .release import Release
from .stack import Stack, running

pytestmark = pytest.mark.docker

TOKEN = "canary-token-0123456789"
WRITTEN = """
registry:
  probe_interval: 1
  registration:
    tokens: {partners: {file: keys/partners}}
    store: true
    reach: [10.213.0.0/16]
"""
"""The default `networks.pool`: the host is the gateway of each network in it."""
CAPABILITIES = {"tools": ["t"], "schema": {"t": {"input": {"symbol": "string"}, "output": {"x": "list[float]"}}}}


@asynccontextmanager
async def outside(port: int = 0) -> AsyncIterator[int]:
    """A minimal MCP agent on every address of this host; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked = json.loads(await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0])))
        said = {
            "server/discover": {"supportedVersions": ["2026-07-28"]},
            "tools/call": {"content": [{"type": "text", "text": '{"status": "ok"}'}]},
        }.get(asked["method"], {"tools": []})
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        writer.write(f"content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "0.0.0.0", port) as server:
        yield server.sockets[0].getsockname()[1]


async def say(fleet: Stack | Release, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
    body = json.dumps({"method": method, "params": {"agent_id": "feature_extractor", **params}}).encode()
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    reply = await http_client.request("POST", f"{fleet.url('registry')}/mcp", headers=headers, body=body)
    return reply.status, json.loads(reply.body)


async def test_an_agent_outside_of_the_fleet_registers_is_probed_and_outlives_the_registry(root, tmp_path):
    config = copy_example(root / "examples" / "01-hello", tmp_path, name=f"register-e2e-{os.getpid()}", more=WRITTEN)
    keys = config.parent / "keys"
    keys.mkdir()
    (keys / "partners").write_text(f"{TOKEN}\n")
    with running(config) as stack:
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

"""Where the registry can be made to go: nowhere that agents.yaml does not name. One test for each rule.

Rules for agents that register themselves are in test_reach.py; the size of answers is in test_probe.py and faults/.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from pallas_contract.probe.probe import Result
from pallas_registry import settings
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.dns import DnsDiscovery
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.http.app import create_app
from pallas_registry.probing.scheduler import Prober
from pallas_registry.service import Service
from tests.registry.fake_fleet import Fake, running, states
from tests.registry.faults import misbehaving as bad

pytestmark = pytest.mark.usefixtures("no_threads", "patient")


class Trap:
    """A port on loopback; `visits` counts who came."""

    def __init__(self) -> None:
        self.visits = 0
        self.url = ""

    async def visited(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        writer.close()


@pytest.fixture
async def trap() -> AsyncIterator[Trap]:
    trap = Trap()
    async with await asyncio.start_server(trap.visited, "127.0.0.1", 0) as server:
        trap.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        yield trap


@asynccontextmanager
async def serving(how: bad.Behaviour) -> AsyncIterator[bad.Agent]:
    agent = bad.Agent("harper", how)
    await agent.start()
    try:
        yield agent
    finally:
        await agent.stop()


async def probed(how: bad.Behaviour) -> Result:
    """What the registry's prober finds at an agent that behaves like this."""
    async with serving(how) as agent:
        return await Prober().check(Endpoint(f"http://{agent.address}/mcp"), Result("error"))


async def test_a_url_comes_from_the_file_and_the_port_is_the_kits(folder: Path) -> None:
    asked: list[str] = []

    async def resolve(host: str) -> frozenset[str]:
        asked.append(host)
        return frozenset({"10.0.0.2"})

    found: dict[str, Sighting] = {}
    agents = list(FleetWatcher(folder / "agents.yaml").first().fleet.agents)
    await DnsDiscovery(resolve).sweep(agents, found.__setitem__)
    assert asked == ["harper", "tech-research"]
    urls = {endpoint.url for sighting in found.values() for endpoint in sighting.endpoints}
    assert urls == {"http://harper:8080/mcp", "http://tech-research:8080/mcp"}


@pytest.mark.parametrize("where", ["path", "query", "body", "header", "mcp"])
async def test_a_url_in_a_request_is_not_asked(folder: Path, trap: Trap, where: str) -> None:
    """Rechecks and questions of agents name agents of the file; anything else is not found, and nobody goes there."""
    asked: list[Endpoint] = []

    class Watched(Fake):
        async def check(self, endpoint: Endpoint, _before: Result | None) -> Result:
            asked.append(endpoint)
            return Result("ok")

    fake = Watched()
    fake.put("harper", "10.0.0.1")
    follower = FleetWatcher(folder / "agents.yaml")
    service = Service(settings.read({}), follower.first(), follower, Dependencies(discovery=fake, check=fake.check))
    app = create_app(service.backend(run="run"))
    call = {"name": "find_agent", "arguments": {"capability": trap.url, "name": trap.url}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8200") as client:
        reply = await {
            "path": lambda: client.post(f"/agents/{trap.url.replace('/', '%2F')}/recheck"),
            "query": lambda: client.post(f"/agents/nobody/recheck?url={trap.url}"),
            "body": lambda: client.post("/agents/nobody/recheck", json={"url": trap.url, "address": trap.url}),
            "header": lambda: client.post("/agents/nobody/recheck", headers={"x-forwarded-host": trap.url[7:-4]}),
            "mcp": lambda: client.post("/mcp", json=message),
        }[where]()
    assert reply.status_code < 500
    assert where == "mcp" or reply.status_code == 404
    assert (asked, trap.visits) == ([], 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(trap: Trap, status: int) -> None:
    found = await probed(bad.redirect(status, trap.url))
    assert (found.state, trap.visits) == ("error", 0)
    assert "redirects are not followed" in found.reason.message


async def test_a_url_in_an_answer_is_not_asked(trap: Trap) -> None:
    async def inviting(asked: bad.Asked, writer: asyncio.StreamWriter) -> None:
        about = {"name": "harper", "version": "1", "websiteUrl": trap.url, "icons": [{"src": trap.url}]}
        result = {
            "supportedVersions": [bad.MODERN],
            "_meta": {"io.modelcontextprotocol/serverInfo": about},
            "tools": [{"name": "get_health", "inputSchema": {"$ref": trap.url}}],
            "content": [{"type": "text", "text": json.dumps({"status": "ok", "message": trap.url})}],
        }
        body = json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], "result": result}).encode()
        headers = {"location": trap.url, "link": f"<{trap.url}>; rel=preload", "alt-svc": f'h2="{trap.url[7:-4]}"'}
        writer.write(bad.http(200, body, content_type="application/json", **headers))

    found = await probed(inviting)
    assert (found.state, found.tools is not None, trap.visits) == ("ok", True, 0)


async def test_a_proxy_of_the_environment_is_not_asked(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, trap.url)
    assert (await probed(bad.well)).state == "ok"
    assert trap.visits == 0


async def test_the_address_that_was_checked_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is not looked up a second time, when it could say something else (DNS rebinding)."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("looked up again"))
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", lambda *_, **__: pytest.fail("looked up again"))
    async with serving(bad.well) as agent:
        endpoint = Endpoint(f"http://harper:{agent.port}/mcp", "127.0.0.1")
        assert (await Prober().check(endpoint, None)).state == "ok"


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "fe80::1", "::ffff:169.254.169.254"),
        *("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16"),
        *("0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"),
    ],
)
async def test_addresses_that_are_no_agents_are_refused_beside_good_ones(address: str) -> None:
    found: dict[str, Sighting] = {}

    async def resolve(_host: str) -> frozenset[str]:
        return frozenset({address, "10.0.0.2"})

    await DnsDiscovery(resolve).sweep(["harper"], found.__setitem__)
    assert [endpoint.ip for endpoint in found["harper"].endpoints] == ["10.0.0.2"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("file:///etc/passwd", "file://"),
        ("ftp://127.0.0.1/", "ftp://127.0.0.1"),
        ("gopher://127.0.0.1/", "gopher://127.0.0.1"),
        ("http://user:secret@127.0.0.1/mcp", "http://127.0.0.1"),
    ],
)
async def test_other_schemes_are_not_asked(url: str, shown: str) -> None:
    found = await Prober().check(Endpoint(url), Result("error"))
    assert (found.state, found.reason.message) == ("error", f"not an http(s) URL: {shown}")


HOSTILE = 'a\nINFO fake line\r\x1b[31m red \u202e desrever </script><img src=x onerror=alert(1)> "} 1\npallas_up 7'


async def test_what_an_agent_says_stays_a_value(folder: Path, time, fake: Fake) -> None:
    """No line of the log, no sample of the metrics, no element of the page can be made by an agent's words."""

    async def says(asked: bad.Asked, writer: asyncio.StreamWriter) -> None:
        about = {"name": "harper", "version": HOSTILE}
        said = {"status": "degraded", "message": HOSTILE}
        result = {
            "supportedVersions": [bad.MODERN],
            "_meta": {"io.modelcontextprotocol/serverInfo": about},
            "tools": [{"name": HOSTILE}],
            "content": [{"type": "text", "text": json.dumps(said)}],
        }
        body = json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], "result": result}).encode()
        writer.write(bad.http(200, body, content_type="application/json"))

    found = await probed(says)
    assert found.state == "degraded"
    for text in (found.reason.message, found.version, *(found.tools or {})):
        assert text.isprintable(), text
    fake.put("harper", "10.0.0.1", found)
    async with running(folder, time, fake, fake) as service:
        await time.advance()
        assert states(service)["harper"] == ("degraded", found.reason.message)
        assert "\npallas_up" not in (await service.monitor.metrics.scrape(""))[0].decode()
        page = service.backend(run="run").page().decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page

"""The plain pages, as a probe sees them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.server import Server
from starlette.applications import Starlette

from pallas_agent_runtime.config import settings
from pallas_agent_runtime.health.downstream import Downstream, combine
from pallas_agent_runtime.health.preflight import Outcome, Preflight, ProviderTarget
from pallas_agent_runtime.metrics import Metrics
from pallas_agent_runtime.web import app as web_app
from pallas_contract.documents.reason import Reason
from pallas_contract.fleet import source
from pallas_contract.probe.probe import Result, Target
from pallas_contract.validate import load
from pallas_service.access.gate import Gate

Headers = dict[str, str]

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Page:
    """One agent's pages; `failure` is why it cannot process requests."""

    def __init__(self, failure: str = "") -> None:
        data = {"name": "demo", "agents": {"jarvis": {"module": "agents.x", "port": 8201}}}
        tree = source.parse(str(data), name="agents.yaml")
        self.settings = own = settings.resolve(load.parse(tree), tree, "jarvis", Path("/project"), environ={})
        self.now = 10.0
        self.downstream = Downstream({"argos": Target("http://argos/mcp")}, self.probe, clock=lambda: self.now)
        self.preflight = Preflight([], self.check, clock=lambda: self.now)
        self.preflight.outcomes["openai"] = Outcome("no API key", 9.0)
        metrics = Metrics("jarvis", ["jarvis"])
        current = lambda: combine(self.downstream.unreachable_why(), "", failure, NOW)  # noqa: E731
        metrics.watch(current, self.downstream, self.preflight)
        self.pages = web_app.Pages(
            settings=own,
            capabilities=None,
            current=current,
            downstream=self.downstream,
            preflight=self.preflight,
            metrics=metrics,
            started=NOW,
        )

    async def check(self, provider: ProviderTarget) -> str:
        return ""

    async def probe(self, target: Target, *, era: str, timeout: float) -> Result:
        return Result("error", Reason("ConnectionRefused", "connection refused"))

    async def get(self, path: str) -> httpx.Response:
        transport = httpx.ASGITransport(Starlette(routes=list(self.pages.routes())))
        async with httpx.AsyncClient(transport=transport, base_url="http://10.0.0.7:8080") as http:
            return await http.get(path)


async def test_readiness_is_the_engines_alone() -> None:
    page = Page(failure="no model")
    await page.downstream.refresh()
    assert (await page.get("/readyz")).status_code == 503
    assert (await page.get("/livez")).status_code == 200
    page.pages.ready = True
    assert (await page.get("/readyz")).status_code == 200


async def test_healthz_shows_what_the_status_is_made_of() -> None:
    page = Page()
    await page.downstream.refresh()
    page.now = 12.5
    reply = await page.get("/healthz")
    assert reply.status_code == 200
    assert reply.json() == {
        "status": "degraded",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": "Unreachable: argos",
        "name": "jarvis",
        "version": "1.0.0",
        "downstream": {"argos": {"state": "error", "reason": "connection refused", "age": 2.5}},
        "llm": {"openai": {"ok": False, "reason": "no API key", "age": 3.5}},
    }


async def test_healthz_is_an_error_only_when_the_agent_is() -> None:
    reply = await Page(failure="no model").get("/healthz")
    assert (reply.status_code, reply.json()["message"]) == (503, "Cannot process requests: no model")


@pytest.mark.parametrize(("failure", "value"), [("", 0.5), ("no model", 0.0)])
async def test_metrics_are_read_at_every_scrape(failure: str, value: float) -> None:
    page = Page(failure)
    await page.downstream.refresh()
    reply = await page.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    lines = reply.text.splitlines()
    assert f'pallas_agent_health{{agent="jarvis"}} {value}' in lines
    assert 'pallas_downstream_up{server="argos"} 0.0' in lines
    assert 'pallas_llm_preflight_ok{provider="openai"} 0.0' in lines
    assert any(line.startswith("pallas_build_info{version=") for line in lines)


async def test_its_own_registry_entry() -> None:
    reply = await Page(failure="no model").get("/.well-known/mcp/server.json")
    (entry,) = json.loads(reply.text)["servers"]
    assert entry["server"]["remotes"] == [{"type": "streamable-http", "url": "http://localhost:8201/mcp"}]
    meta: dict[str, Any] = entry["_meta"]
    assert meta["io.modelcontextprotocol.registry/official"]["updatedAt"] == "2026-01-01T00:00:00Z"
    assert meta["io.pallas-kit/health"]["status"] == "error"


async def test_its_card_says_who_and_where_and_which_versions_it_speaks() -> None:
    reply = await Page(failure="no model").get("/mcp/server-card")
    assert reply.headers["content-type"] == "application/mcp-server-card+json"
    assert reply.headers["access-control-allow-origin"] == "*"
    (remote,) = reply.json().pop("remotes")
    assert remote.pop("supportedProtocolVersions")[-2:] == ["2025-11-25", "2026-07-28"]
    assert remote == {"type": "streamable-http", "url": "http://localhost:8201/mcp"}
    assert reply.json().keys() == {"$schema", "name", "title", "description", "version", "remotes"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403), ({}, 401)],
    ids=["host", "origin", "neither"],
)
async def test_a_protected_agent_looks_at_host_and_origin_before_any_token(headers: Headers, status: int) -> None:
    seen: list[str] = []

    class Nobody:
        async def verify_token(self, token: str) -> None:
            seen.append(token)

    page = Page()
    gate = Gate(Nobody(), "http://localhost:8201/mcp", "https://id.example")
    manager = web_app.session_manager(Server("x"), page.settings)
    transport = httpx.ASGITransport(web_app.app(manager, page.pages, 100, gate))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8201") as http:
        reply = await http.post("/mcp", json={}, headers={"authorization": "Bearer guess", **headers})
    assert reply.status_code == status
    assert seen == (["guess"] if status == 401 else [])


async def test_nothing_is_redirected_to_where_the_host_header_says() -> None:
    page = Page()
    manager = web_app.session_manager(Server("x"), page.settings)
    transport = httpx.ASGITransport(web_app.app(manager, page.pages, 100))
    async with httpx.AsyncClient(transport=transport, base_url="http://elsewhere.example") as http:
        for path in ("/mcp/", "/livez/"):
            assert (await http.post(path, json={})).status_code == 404


async def test_who_shows_no_token_is_told_of_no_error() -> None:
    """RFC 6750, 3.1; also without metadata and scopes the challenge has a parameter."""

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("nobody may enter")

    class Nobody:
        async def verify_token(self, token: str) -> None: ...

    transport = httpx.ASGITransport(Gate(Nobody(), "http://localhost:8201/mcp").around(nothing))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8201") as http:
        for headers in ({}, {"authorization": "Basic dTpw"}):
            reply = await http.post("/mcp", json={}, headers=headers)
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"] == 'Bearer realm="http://localhost:8201/mcp"'
        reply = await http.post("/mcp", json={}, headers={"authorization": "Bearer guess"})
        assert 'error="invalid_token"' in reply.headers["www-authenticate"]

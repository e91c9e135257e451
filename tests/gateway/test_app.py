"""The plain pages, and what stands in front of the agents."""

from __future__ import annotations

import json

import pytest
from starlette.responses import PlainTextResponse

from tests.gateway.door import UI, opened

UP = PlainTextResponse("{}", media_type="application/json")


async def test_pages_are_open_where_agents_are_not() -> None:
    async with opened({"scout": UP}, tokens={"ui": UI}) as door:
        assert (await door.web.get("/livez")).text == "ok\n"
        assert (await door.web.get("/readyz")).status_code == 503
        door.pages.ready = True
        assert (await door.web.get("/readyz")).text == "ok\n"
        assert (await door.web.get("/healthz")).json()["status"] == "ok"
        assert "pallas_build_info" in (await door.web.get("/metrics")).text
        assert (await door.web.post("/agents/scout/mcp")).status_code == 401


async def test_health_names_the_agents_that_failed_last() -> None:
    async with opened({"scout": "http://127.0.0.1:1/mcp", "oracle": UP}) as door:
        for agent in ("scout", "oracle"):
            await door.web.post(f"/agents/{agent}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        body = (await door.web.get("/healthz")).json()
    assert (body["status"], body["message"]) == ("degraded", "last calls failed: scout")
    assert body["agents"] == {"scout": "unreachable"}


@pytest.mark.parametrize(
    ("header", "status"), [({"host": "evil.example"}, 421), ({"origin": "http://evil.example"}, 403)]
)
async def test_pages_of_other_sites_are_refused_before_any_token(header: dict[str, str], status: int) -> None:
    async with opened({"scout": UP}, tokens={"ui": UI}) as door:
        assert (await door.web.post("/agents/scout/mcp", headers=header)).status_code == status


async def test_what_went_through_is_counted_by_known_names_only() -> None:
    async with opened({"scout": UP}) as door:
        for agent, method in (("scout", "tools/call"), ("scout", "made/up"), ("made-up", "tools/call")):
            message = {"jsonrpc": "2.0", "id": 1, "method": method}
            await door.web.post(f"/agents/{agent}/mcp", content=json.dumps(message))
        await door.noted.until(3)
        lines = (await door.web.get("/metrics")).text.splitlines()
        assert door.metrics.idle.is_set()
    counts = [line for line in lines if line.startswith("pallas_gateway_request_duration_seconds_count")]
    assert [line.partition("{")[2] for line in sorted(counts)] == [
        'agent="_OTHER",mcp_method_name="tools/call",outcome="unknown_agent"} 1.0',
        'agent="scout",mcp_method_name="_OTHER",outcome="answered"} 1.0',
        'agent="scout",mcp_method_name="tools/call",outcome="answered"} 1.0',
    ]

"""The plain pages beside MCP, and who may ask what."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.agent_runtime.pair.calls import STATELESS, call, shown

pytestmark = pytest.mark.slow


def test_pages_for_probes_and_people(fleet: Any, toolkit: Any) -> None:
    assert fleet.get("harper", "/livez") == (200, "ok\n")
    said = toolkit.until(lambda: shown(fleet, "ok"))
    assert said["downstream"]["tech_research"]["state"] == "ok"
    assert said["llm"]["openai"]["ok"] is True
    (entry,) = json.loads(fleet.get("tech_research", "/.well-known/mcp/server.json")[1])["servers"]
    assert entry["server"]["name"] == "com.example.demo/tech-research"
    assert entry["server"]["capabilities"] == {
        "model": "local-vision",
        "vision": True,
        "context_window": 65536,
        "max_output_tokens": 16384,
    }


async def test_metrics_count_calls_with_known_labels_only(fleet: Any, toolkit: Any) -> None:
    toolkit.until(lambda: shown(fleet, "ok"))
    await call(fleet, STATELESS, "harper", {"message": "x"})
    async with Client(fleet.url("harper"), mode=STATELESS) as client:
        with pytest.raises(MCPError):
            await client.call_tool("made-up-name", {})
    lines = fleet.get("harper", "/metrics")[1].splitlines()
    counted = [line for line in lines if line.startswith("mcp_server_operation_duration_seconds_count")]
    assert any('gen_ai_tool_name="harper"' in line and 'error_type=""' in line for line in counted)
    assert any('gen_ai_tool_name="_OTHER"' in line and 'error_type="-32602"' in line for line in counted)
    assert not any("made-up-name" in line for line in lines)
    assert 'pallas_agent_health{agent="harper"} 1.0' in lines
    assert 'pallas_downstream_up{server="tech_research"} 1.0' in lines
    assert 'pallas_llm_preflight_ok{provider="openai"} 1.0' in lines
    assert "pallas_calls_in_flight 0.0" in lines


async def test_a_call_is_one_message_and_lists_no_tools_beside_it(fleet: Any) -> None:
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "harper"}
    known = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in known.items()}
    params = {"name": "harper", "arguments": {"message": "x"}, "_meta": meta}
    accept = {"accept": "application/json, text/event-stream"}

    def listed() -> list[str]:
        lines = fleet.get("harper", "/metrics")[1].splitlines()
        return [line for line in lines if "_count{" in line and 'mcp_method_name="tools/list"' in line]

    before = listed()
    async with httpx2.AsyncClient(timeout=30) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        reply = await http.post(fleet.url("harper"), headers=headers | accept, json=body)
    assert reply.json()["result"]["isError"] is False
    assert listed() == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:1"}, 200),
    ],
)
async def test_foreign_hosts_and_origins_are_refused_on_mcp_only(
    fleet: Any, headers: dict[str, str], status: int
) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(timeout=60) as http:
        reply = await http.post(fleet.url("harper"), headers=headers | accept, json=body)
        page = await http.get(fleet.url("harper", "/readyz"), headers=headers)
    assert (reply.status_code, page.status_code) == (status, 200)

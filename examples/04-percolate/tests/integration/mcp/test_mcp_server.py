"""The integration test of seed 002, against a server that runs: start `pallas`, then `pytest tests/integration/mcp`."""

import os

import httpx


def server():
    """Return the URL of the server: that of `pallas`, or another one."""
    return os.environ.get("PERCOLATE_URL", "http://127.0.0.1:8765/mcp")


async def test_mcp_call_tool():
    async with httpx.AsyncClient(timeout=60.0, trust_env=False) as client:
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "ask_agent",
                "arguments": {"agent_uri": "test-agent", "tenant_id": "test-tenant", "prompt": "Test"},
            },
        }

        response = await client.post(server(), json=request)

        assert response.status_code == 200
        result = response.json()
        assert "result" in result
        assert result["result"]["structuredContent"]["response"]["answer"] == "You asked: Test"


async def test_mcp_read_resource():
    async with httpx.AsyncClient(timeout=60.0, trust_env=False) as client:
        request = {"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": {"uri": "system-agents://list"}}

        response = await client.post(server(), json=request)

        (contents,) = response.json()["result"]["contents"]
        assert contents["mimeType"] == "application/json"
        assert '"fully_qualified_name": "percolate-researcher"' in contents["text"]


async def test_missing_tenant_is_told_by_its_field():
    async with httpx.AsyncClient(timeout=60.0, trust_env=False) as client:
        arguments = {"agent_uri": "test-agent", "prompt": "Test"}
        params = {"name": "ask_agent", "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

        response = await client.post(server(), json=request)

        assert response.json()["error"] == {
            "code": -32602,
            "message": "Invalid params: tenant_id is required",
            "data": {"field": "tenant_id", "reason": "Field required"},
        }

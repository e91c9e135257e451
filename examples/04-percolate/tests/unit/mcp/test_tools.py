"""The unit test of seed 002: `ask_agent` without a server, a model or a network; run it where agents.yaml is."""

from percolate.mcp.tools.agent import ask_agent


async def test_ask_agent_basic():
    result = await ask_agent(
        agent_uri="test-agent",
        tenant_id="test-tenant",
        prompt="Test prompt",
    )

    assert result["status"] == "success"
    assert "response" in result
    assert result["response"]["answer"] == "Test prompt"

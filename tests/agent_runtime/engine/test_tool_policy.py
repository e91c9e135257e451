"""What the fleet says about the tools of a definition."""

from __future__ import annotations

from fast_agent.agents.agent_types import AgentConfig

from pallas_agent_runtime.engine import tool_policy


def test_a_sub_agent_gives_one_tool_unless_the_definition_says_which() -> None:
    config = AgentConfig("x", servers=["research", "get_health", "argos", "told"], tools={"told": ["*"]})
    tool_policy.one_tool_each([config], frozenset({"research", "get_health", "told", "elsewhere"}))
    assert config.tools == {"research": ["research"], "get_health": ["send_message"], "told": ["*"]}

"""What the fleet says about the tools of a definition."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fast_agent.agents.agent_types import AgentConfig
from mcp_types import ListToolsResult, Tool

from pallas_agent_runtime.config import settings
from pallas_agent_runtime.engine import tool_policy
from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from pallas_contract.validate import load


def test_a_sub_agent_gives_one_tool_unless_the_definition_says_which() -> None:
    config = AgentConfig("x", servers=["research", "get_health", "argos", "told"], tools={"told": ["*"]})
    tool_policy.one_tool_each([config], frozenset({"research", "get_health", "told", "elsewhere"}))
    assert config.tools == {"research": ["research"], "get_health": ["send_message"], "told": ["*"]}


TOOLS = [Tool(name=name, input_schema={"type": "object"}) for name in ("candles", "trend", "scout", "exchange__prices")]


async def functions_of(*functions: str) -> dict[str, Tool]:
    """Return what callers may call of an agent that has `TOOLS`, the last of them from a server."""
    agents = {"scout": {"module": "agents.x", "port": 8201, "functions": list(functions)}}
    tree = source.parse(str({"name": "demo", "agents": agents}), name="agents.yaml")
    own = settings.resolve(load.parse(tree), tree, "scout", Path("/project"), environ={})

    async def list_tools() -> ListToolsResult:
        return ListToolsResult(tools=TOOLS)

    agent: Any = SimpleNamespace(list_tools=list_tools)
    return await tool_policy.functions(agent, own)


async def test_callers_may_call_the_functions_that_are_named_and_no_others() -> None:
    assert await functions_of() == {}
    assert list(await functions_of("trend", "candles")) == ["trend", "candles"]


async def test_a_function_that_is_not_there_or_hides_a_tool_of_every_agent_is_refused_by_its_line() -> None:
    with pytest.raises(Refused) as refused:
        await functions_of("candles", "prices", "scout", "get_health")
    assert [(problem.where.field, problem.message) for problem in refused.value.problems] == [
        ("agents.scout.functions.1", "the agent has no function `prices`, only candles, scout, trend"),
        ("agents.scout.functions.2", "`scout` is a tool of the agent already, which takes a message"),
        ("agents.scout.functions.3", "`get_health` is a tool of the agent already, which takes a message"),
    ]

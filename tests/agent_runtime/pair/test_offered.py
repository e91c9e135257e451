"""What an agent offers, to the SDK's own client in both eras (seed 000)."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

pytestmark = pytest.mark.slow


async def test_the_tools_and_the_prompt_are_those_of_the_seed(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert list(tools) == ["send_message", "harper", "get_health"]
    assert prompts == ["harper_history"]
    definition = tools["get_health"].model_dump(by_alias=True, exclude_none=True)
    assert definition == {
        "name": "get_health",
        "description": "Returns the health status of this agent and its downstream dependencies.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    assert tools["harper"].input_schema == tools["send_message"].input_schema
    assert tools["harper"].description == "Orchestrates"


async def test_an_agent_that_remembers_nothing_offers_no_prompt(fleet: Any, era: str) -> None:
    async with Client(fleet.url("tech_research"), mode=era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][1] == "tech_research"
        with pytest.raises(MCPError, match="Method not found"):
            await client.list_prompts()


async def test_a_function_that_agents_yaml_names_is_called_without_the_model(fleet: Any, model: Any, era: str) -> None:
    async with Client(fleet.url("tech_research"), mode=era) as client:
        (listed,) = [tool for tool in (await client.list_tools()).tools if tool.name == "trend"]
        asked = len(model.requests)
        answer = await client.call_tool("trend", {"opened": 20, "closed": 23})
        wrong = await client.call_tool("trend", {"opened": 0, "closed": 23})
        assert len(model.requests) == asked
    assert listed.input_schema["required"] == ["opened", "closed"]
    assert (answer.content[0].text, answer.is_error) == ("0.15", False)
    assert ("division by zero" in wrong.content[0].text, wrong.is_error) == (True, True)


async def test_the_server_says_its_slug_and_the_fleets_version(fleet: Any) -> None:
    async with Client(fleet.url("tech_research"), mode="legacy") as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("tech-research", "1.2.3")

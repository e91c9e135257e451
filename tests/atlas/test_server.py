"""The server as a client of MCP sees it: tools by configuration, their schemas, and errors in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from home_tools.home import opened
from home_tools.problems import Problem
from home_tools.server import server, tools
from home_tools.settings import TOOLS_FILE, Settings
from mcp import Client


async def test_the_tools_are_those_of_the_configuration_each_with_a_schema(home) -> None:
    async with Client(server(home)) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == set(home.settings.tools) == set(tools(home))
    assert {name: tool.description for name, tool in listed.items()} == home.settings.tools
    added = listed["add_task"].input_schema
    assert added["required"] == ["title"]
    assert added["properties"]["priority"]["enum"] == ["high", "medium", "low"]
    assert added["properties"]["priority"]["default"] == "medium"
    assert {"title", "description", "priority"} == set(added["properties"])
    assert listed["weather"].input_schema["required"] == ["location"]
    with_output = {name for name, tool in listed.items() if tool.output_schema}
    assert with_output == {"list_tasks", "list_timers"}


async def test_a_tool_that_is_not_configured_is_not_served(home) -> None:
    fewer = replace(home, settings=replace(home.settings, tools={"echo": "Say it again."}))
    async with Client(server(fewer)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
        assert (await client.call_tool("echo", {"text": "hello"})).content[0].text == "hello"


def test_a_tool_that_there_is_not_is_named(home) -> None:
    wrong = replace(home, settings=replace(home.settings, tools={"teleport": "Be there."}))
    with pytest.raises(Problem, match=r"tools\.yaml: tools: there is no teleport, only add_task, "):
        server(wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tools: [", "cannot be read"),
        ("tools: {}", "has `tools`, `folders`"),
        ("tools: {}\nfolders: []\nmore: 1", "has `tools`, `folders`"),
        ("tools: [echo]\nfolders: []", "tools: each tool has one text"),
        ("tools: {}\nfolders: work/", "folders: is a list of paths"),
    ],
)
def test_a_configuration_that_is_none_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tools.yaml").write_text(text)
    with pytest.raises(Problem, match=said):
        Settings.read({}, tmp_path / "tools.yaml")


def test_the_environment_says_where_and_who(settings, clock) -> None:
    environ = {
        "PALLAS_STATE": "/state",
        "WEATHER_URL": "https://weather.example/",
        "HOME_ZONE": "Europe/Oslo",
        "TIMER_WEBHOOK_TOKEN": "canary",
    }
    read = Settings.read(environ, TOOLS_FILE)
    assert (read.state, read.weather_url, read.zone) == (Path("/state"), "https://weather.example", "Europe/Oslo")
    assert "canary" not in repr(read)
    with pytest.raises(Problem, match="there is no time zone `Mars/Base`"):
        opened(replace(settings, zone="Mars/Base"), clock)


async def test_what_goes_wrong_is_a_tool_error_in_words(call) -> None:
    answer = await call("weather", location="The Lake")
    assert answer.is_error
    assert "there is no place `The Lake`: name a town" in answer.content[0].text
    answer = await call("add_task", title="x", priority="urgent")
    assert answer.is_error
    assert "'high', 'medium' or 'low'" in answer.content[0].text

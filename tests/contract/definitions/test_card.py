"""What an agent card says of its agent."""

from __future__ import annotations

import pytest

from pallas_contract.definitions import card
from pallas_contract.problems import Refused


def test_markdown_with_its_positions_and_body() -> None:
    text = "---\ntype: agent\nname: scout\nservers:\n  - a\n  - b\nmodel: openai.x\n---\n\nYou scout.\n"
    parsed = card.parse(text, name="agents/scout.md")
    agent = parsed.agent
    assert (agent.name, agent.kind, agent.servers, agent.model) == ("scout", "agent", ("a", "b"), "openai.x")
    assert str(agent.where_of("servers.1")) == "agents/scout.md:6:5 servers.1"
    assert parsed.body == "\nYou scout."


def test_yaml_and_the_defaults_of_a_card() -> None:
    agent = card.parse("instruction: Be brief.\n", name="agents/tech research.yaml").agent
    assert (agent.name, agent.kind, agent.servers, agent.model) == ("tech_research", "agent", (), "")


def test_a_byte_order_mark_and_empty_lines_before_it() -> None:
    agent = card.parse("\ufeff\n---\nservers: [a]\n---\n", name="a.md").agent
    assert str(agent.where_of("servers.0")) == "a.md:3:11 servers.0"


@pytest.mark.parametrize("servers", ["['${NAME}']", "a", "[1]", "{a: b}"])
def test_servers_that_are_no_literal_names(servers: str) -> None:
    assert card.parse(f"---\nservers: {servers}\n---\n", name="a.md").agent.servers is None


def test_a_model_that_a_variable_names() -> None:
    assert card.parse('---\nmodel: "${MODEL:passthrough}"\n---\n', name="a.md").agent.model is None


@pytest.mark.parametrize(
    "text",
    [
        "type: a2a\nurl: https://other.example\n",
        "mcp_connect: [{target: https://other.example}, {target: npx server}, 7]\n",
        "mcp_connect: {other: {url: https://other.example}}\n",
    ],
)
def test_servers_that_it_names_by_url(text: str) -> None:
    assert card.parse(text, name="a.yaml").agent.urls == ("https://other.example",)


@pytest.mark.parametrize(
    ("url", "counts"), [("${SOME_URL}", True), (" HTTP://other.example ", True), ("${", True), ("$URL", False)]
)
def test_a_url_is_known_by_how_it_begins_also_where_a_variable_is_all_of_it(url: str, counts: bool) -> None:
    agent = card.parse(f"mcp_connect: [{{target: '{url}'}}]\n", name="a.yaml").agent
    assert agent.urls == ((url.strip(),) if counts else ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("You scout.\n", "a.md:1:1: has no frontmatter"),
        ("", "a.md:1:1: has no frontmatter"),
        ("---\ntype: agent\n", "a.md:1:1: has no frontmatter"),
        ("---\n- a\n---\n", "a.md:2:1: must be a mapping"),
        ("---\n\na: b: c\n---\n", "a.md:3:5: broken YAML"),
    ],
)
def test_what_is_no_card(text: str, message: str) -> None:
    with pytest.raises(Refused) as caught:
        card.parse(text, name="a.md")
    assert str(caught.value).startswith(message)


def test_function_tools_start_from_the_card_and_inclusions_from_the_project() -> None:
    tools = "function_tools:\n  - tools.py:add\n  - {entrypoint: ../t.py:b}\n  - 7\n"
    text = f"---\n{tools}messages: old.json\n---\n{{{{file:p.md}}}}\n"
    agent = card.parse(text, name="agents/scout.md").agent
    assert [(tool.entry, str(tool.where), tool.folder) for tool in agent.function_tools] == [
        ("tools.py:add", "agents/scout.md:3:5 function_tools.0", "agents"),
        ("../t.py:b", "agents/scout.md:4:5 function_tools.1", "agents"),
    ]
    assert [(file.path, str(file.where)) for file in agent.files] == [
        ("p.md", "agents/scout.md:8:1"),
        ("agents/old.json", "agents/scout.md:6:1 messages"),
    ]
    one = card.parse("function_tools: a.py:f\ninstruction: '{{file:i.md}}'\n", name="scout.yaml").agent
    assert [(tool.entry, tool.folder) for tool in one.function_tools] == [("a.py:f", ".")]
    assert [file.path for file in one.files] == ["i.md"]
    assert card.parse("function_tools: ['${TOOL}']\n", name="a.yaml").agent.function_tools == ()

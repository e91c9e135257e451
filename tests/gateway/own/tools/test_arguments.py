"""Arguments of the tools of seed 002, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from pallas_gateway.own.tools.arguments import MODELS, AskAgent, SearchKnowledgeBase, Tools, check_schema

TOOLS = Tools(tuple(MODELS))
ASK: dict[str, Any] = {"agent_uri": "scout", "tenant_id": "acme", "prompt": "?"}
SEARCH: dict[str, Any] = {"query": "returns", "tenant_id": "acme"}
CREATE: dict[str, Any] = {
    "tenant_id": "acme",
    "user_id": "user-123",
    "agent_name": "my-custom-agent",
    "description": "You answer.",
    "output_schema": {"type": "object"},
}
LOOKUP: dict[str, Any] = {"entity_type": "service", "query": "Express", "tenant_id": "acme"}


def refusal(error: pytest.ExceptionInfo[MCPError]) -> tuple[int, str]:
    return error.value.code, error.value.data["field"]


def test_what_the_seed_gives_a_default_has_it() -> None:
    assert isinstance(TOOLS.read("ask_agent", ASK), AskAgent)
    read = TOOLS.read("search_knowledge_base", SEARCH)
    assert isinstance(read, SearchKnowledgeBase)
    assert read.model_dump(exclude_none=True) == {**SEARCH, "limit": 5}
    for tool, arguments in (("create_agent", CREATE), ("lookup_entity", {**LOOKUP, "include_related": True})):
        assert TOOLS.read(tool, arguments).model_dump(exclude_none=True) == arguments


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("ask_agent", {**ASK, "model": "x" * 201}, "model"),
        ("ask_agent", {**ASK, "prompt": ""}, "prompt"),
        ("search_knowledge_base", {**SEARCH, "limit": 0}, "limit"),
        ("search_knowledge_base", {**SEARCH, "limit": 21}, "limit"),
        ("search_knowledge_base", {**SEARCH, "limit": "5"}, "limit"),
        ("search_knowledge_base", {**SEARCH, "knowledge_base": "secrets"}, "knowledge_base"),
        ("search_knowledge_base", {**SEARCH, "query": "x" * 2001}, "query"),
        ("search_knowledge_base", {"query": "x"}, "tenant_id"),
        ("create_agent", {key: value for key, value in CREATE.items() if key != "user_id"}, "user_id"),
        ("create_agent", {**CREATE, "output_schema": []}, "output_schema"),
        ("create_agent", {**CREATE, "tools": [1]}, "tools.0"),
        ("lookup_entity", {**LOOKUP, "entity_type": ""}, "entity_type"),
        ("lookup_entity", {**LOOKUP, "more": 1}, "more"),
        ("delete_agent", LOOKUP, "name"),
    ],
)
def test_what_is_wrong_is_refused_by_name(tool: str, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(MCPError) as error:
        TOOLS.read(tool, arguments)
    assert refusal(error) == (-32602, field)


def test_a_tool_that_no_service_has_is_none() -> None:
    tools = Tools(("ask_agent",))
    assert [tool.name for tool in tools.listed()] == ["ask_agent"]
    assert tools.schema("lookup_entity") is None
    with pytest.raises(MCPError) as error:
        tools.read("lookup_entity", LOOKUP)
    assert refusal(error) == (-32602, "name")


def test_clients_are_told_what_is_required() -> None:
    required = {tool.name: tool.input_schema["required"] for tool in TOOLS.listed()}
    assert required == {
        "ask_agent": ["agent_uri", "tenant_id", "prompt"],
        "search_knowledge_base": ["query", "tenant_id"],
        "create_agent": ["tenant_id", "user_id", "agent_name", "description", "output_schema"],
        "lookup_entity": ["entity_type", "query", "tenant_id"],
    }


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"properties": {"a": 1}}, {"required": "a"}])
def test_an_output_schema_is_one(schema: dict[str, Any]) -> None:
    check_schema({"type": "object", "properties": {"answer": {"type": "string"}}})
    with pytest.raises(MCPError) as error:
        check_schema(schema)
    assert refusal(error) == (-32602, "output_schema")

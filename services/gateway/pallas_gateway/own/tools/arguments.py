"""The tools of seed 002 (Available Tools): what each takes, as pydantic checks it and clients are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import mcp_types as t
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pallas_gateway.own.failures import invalid, invalid_arguments

Tenant = Annotated[str, Field(min_length=1, max_length=64, description="Tenant scope: that of the token")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Query = Annotated[str, Field(min_length=1, max_length=2000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AskAgent(_Strict):
    """Execute an agent-let with a user prompt."""

    agent_uri: Name = Field(description="Agent identifier, as system-agents://list has it")
    tenant_id: Tenant
    prompt: str = Field(min_length=1, description="User prompt for the agent")
    user_id: str | None = Field(default=None, max_length=256, description="User identifier")
    session_id: str | None = Field(default=None, max_length=256, description="Session to be continued")
    model: str | None = Field(
        default=None, max_length=200, description="Model that is to answer: that of the agent, or the call fails"
    )


class SearchKnowledgeBase(_Strict):
    """Search memory for what a query is about."""

    query: Query = Field(description="Search query")
    tenant_id: Tenant
    knowledge_base: Literal["general", "codebase", "documents"] | None = Field(default=None, description="Scope")
    limit: int = Field(default=5, ge=1, le=20, description="Most results")


class CreateAgent(_Strict):
    """Create a new agent-let that belongs to a user."""

    tenant_id: Tenant
    user_id: str = Field(min_length=1, max_length=256, description="User creating the agent")
    agent_name: Name = Field(description="Unique agent name")
    description: str = Field(min_length=1, description="System prompt")
    output_schema: dict[str, Any] = Field(description="JSON Schema for structured output")
    tools: list[Name] | None = Field(default=None, max_length=100, description="MCP tools the agent can use")


class LookupEntity(_Strict):
    """Look up an entity in the graph."""

    entity_type: Name = Field(description="Entity type: carrier, service, person and so on")
    query: Query = Field(description="Entity name or description")
    tenant_id: Tenant
    include_related: bool = Field(default=False, description="Include graph relationships")


Arguments = AskAgent | SearchKnowledgeBase | CreateAgent | LookupEntity
ASK = "ask_agent"
AGENT = "agent_uri"
CREATE = "create_agent"
MODELS: Mapping[str, type[Arguments]] = {
    ASK: AskAgent,
    "search_knowledge_base": SearchKnowledgeBase,
    CREATE: CreateAgent,
    "lookup_entity": LookupEntity,
}
"""By the names of the tools."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Those of `MODELS` that a gateway has; with routes `ask_agent` needs no agent where its caller has one."""

    names: tuple[str, ...]
    routed: bool = False

    def listed(self, shown: Callable[[str], bool] = lambda name: True) -> list[t.Tool]:
        """Return those that are `shown`, as a client is told of them."""
        return [
            t.Tool(name=name, description=MODELS[name].__doc__, input_schema=self.schema(name) or {})
            for name in self.names
            if shown(name)
        ]

    def schema(self, name: str) -> dict[str, Any] | None:
        """Return the JSON Schema of a tool's arguments; None where there is no such tool."""
        if name not in self.names:
            return None
        schema = MODELS[name].model_json_schema()
        schema.pop("description", None)  # it is the tool's
        if name == ASK and self.routed:
            schema["required"].remove(AGENT)
        return schema

    def read(self, name: str, arguments: Mapping[str, Any]) -> Arguments:
        """Return the checked arguments of a call.

        Raises:
            MCPError: there is no such tool, or an argument is wrong.
        """
        if name not in self.names:
            raise invalid("name", f"there are {', '.join(self.names)}", f"Unknown tool: {name[:80]}")
        try:
            read: Arguments = MODELS[name].model_validate(dict(arguments))
        except ValidationError as error:
            raise invalid_arguments(error) from None
        return read


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no JSON Schema of draft 2020-12; up to a second of work.

    Raises:
        MCPError: it is none.
    """
    # takes a tenth of a second and some megabytes, and most gateways make no agents
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        raise invalid("output_schema", f"no JSON Schema: {error.message[:200]}") from None
    except RecursionError:
        raise invalid("output_schema", "no JSON Schema: too deep") from None

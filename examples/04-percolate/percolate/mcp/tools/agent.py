"""create_agent, list_agents and ask_agent, for the agents that users make."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from percolate.agentlets import answers, keeping
from percolate.agentlets.definition import SCHEME, Definition
from percolate.mcp.tools import used
from percolate.mcp.tools.search import Tenant

Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
ANSWER = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["answer", "confidence", "tags"],
}
"""What a researcher answers (seed 002, ask_agent)."""
OF_EVERYBODY = {"test-agent": Definition(f"{SCHEME}test-agent", "You are a test agent. Answer in one line.", ANSWER)}
"""Agents that every tenant has."""


async def create_agent(
    *,
    tenant_id: Tenant,
    user_id: Name,
    agent_name: Name,
    description: Text,
    output_schema: dict[str, Any],
    tools: list[str] | None = None,
) -> dict[str, Any]:
    """Create an agent-let that belongs to a user; one of that name gets its next version."""

    def written() -> Definition:
        return keeping.create(
            used().store,
            tenant_id,
            user=user_id,
            name=agent_name,
            description=description,
            output_schema=output_schema,
            tools=tools or [],
        )

    definition = await asyncio.to_thread(written)
    message = "Agent created successfully" if definition.version == 1 else f"Version {definition.version} created"
    return {"status": "success", "agent_uri": definition.uri, "version": definition.version, "message": message}


async def list_agents(tenant_id: Tenant) -> dict[str, Any]:
    """List the newest version of each agent of a tenant."""
    definitions = await asyncio.to_thread(keeping.latest, used().store, tenant_id)
    return {"agents": [definition.document() for definition in definitions]}


async def ask_agent(
    *, agent_uri: Name, tenant_id: Tenant, prompt: Text, user_id: str | None = None, session_id: str | None = None
) -> dict[str, Any]:
    """Ask an agent: its answer fits its output schema. It remembers nothing of other questions."""
    name = agent_uri.removeprefix(SCHEME)
    store = used().store
    definition = OF_EVERYBODY.get(name) or await asyncio.to_thread(keeping.find, store, tenant_id, f"{SCHEME}{name}")
    response = await answers.ask(used().runner, definition, tenant=tenant_id, prompt=prompt)
    return {"status": "success", "response": response}

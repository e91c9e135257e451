"""lookup_entity."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from percolate.mcp.tools import used
from percolate.mcp.tools.search import Query, Tenant
from percolate.memory.entities import lookup, related

Type = Annotated[str, Field(min_length=1, max_length=200)]


async def lookup_entity(
    entity_type: Type, query: Query, tenant_id: Tenant, include_related: bool = False
) -> dict[str, Any]:
    """Look up an entity in the graph, by its name or one that is like it.

    Raises:
        NotThere: there is none.
    """

    def answer() -> dict[str, Any]:
        entity = lookup(used().store, tenant_id, entity_type, query)
        neighbours = {"related": related(used().store, tenant_id, entity.id)} if include_related else {}
        return {"status": "success", "entity": entity.document(), **neighbours}

    return await asyncio.to_thread(answer)

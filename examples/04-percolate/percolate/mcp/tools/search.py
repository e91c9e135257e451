"""search_knowledge_base."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field

from percolate.mcp.tools import used
from percolate.memory.search import Found, search

Query = Annotated[str, Field(min_length=1, max_length=2000)]
Tenant = Annotated[str, Field(min_length=1, max_length=64)]
KnowledgeBase = Literal["general", "codebase", "documents"]
Limit = Annotated[int, Field(ge=1, le=20)]


async def search_knowledge_base(
    query: Query, tenant_id: Tenant, knowledge_base: KnowledgeBase | None = None, limit: Limit = 5
) -> dict[str, Any]:
    """Search memory for what a query is about, by meaning and by words."""
    found = await _search(query, tenant_id, knowledge_base, limit)
    results = [
        {
            "content": hit.content,
            "score": hit.score,
            "source": hit.source,
            "metadata": {"type": hit.type, "knowledge_base": hit.knowledge_base}
            | ({"page": hit.page} if hit.page is not None else {}),
        }
        for hit in found.hits
    ]
    notice = {"notice": found.notice} if found.notice else {}
    return {"status": "success", "results": results, "count": len(results), **notice}


def library_search(tenant: str) -> Any:
    """Return the tool by which agents search the documents of one tenant, and of no other: they cannot name one."""

    async def search_library(query: Query, limit: Limit = 5) -> str:
        """Search the library; each passage has its source, and its page where there are pages."""
        found = await _search(query, tenant, None, limit)
        passages = [
            f"{hit.content} ({hit.source}{f', page {hit.page}' if hit.page is not None else ''})" for hit in found.hits
        ]
        return "\n\n".join(passages) or "Nothing in the library is about that."

    return search_library


async def _search(query: str, tenant: str, knowledge_base: str | None, limit: int) -> Found:
    # the endpoint of embeddings and the file are waited for in a thread
    return await asyncio.to_thread(
        search,
        used().store,
        used().embedder,
        tenant=tenant,
        query=query,
        knowledge_base=knowledge_base,
        limit=limit,
    )

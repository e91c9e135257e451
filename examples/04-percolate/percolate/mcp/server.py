"""The server: `python -m percolate.mcp.server` is the memory of the tenants, with `library` that of the agents.

What is new in `documents` is taken in before it listens, so that who finds it finds all of it.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

from percolate.agentlets import runners
from percolate.ingest.folder import forget_others, ingest
from percolate.mcp.tools import Tools, use
from percolate.mcp.tools.agent import ask_agent, create_agent, list_agents
from percolate.mcp.tools.entity import lookup_entity
from percolate.mcp.tools.search import library_search, search_knowledge_base
from percolate.memory.databases import open_store
from percolate.memory.embeddings import embedder
from percolate.problems import Problem
from percolate.settings import DOCUMENTS, LIBRARY, Settings

Tool = Callable[..., Awaitable[Any]]
_PATIENCE = 60
"""Seconds to wait for a database that is started beside the server."""


def server(functions: list[Tool]) -> MCPServer:
    """Return an MCP server with tools; a `Problem` of theirs is a tool error, and says what it says."""
    mcp = MCPServer("percolate", version="1.0.0", log_level="WARNING")
    for function in functions:
        mcp.tool(structured_output=False)(_as_json(function))
    return mcp


def _as_json(function: Tool) -> Tool:
    @functools.wraps(function)
    async def answered(**arguments: Any) -> str:
        try:
            answer = await function(**arguments)
        except Problem as error:
            raise ToolError(str(error)) from None
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

    return answered


@functools.wraps(ask_agent)
async def answer_alone(**arguments: Any) -> dict[str, Any]:
    """Return what the agent answers, as the gateway wants it from a service: it makes the seed's result of it."""
    return dict((await ask_agent(**arguments))["response"])


def runner() -> runners.Runner:
    """Return the agent of the fleet that agents.yaml has among `calls`; without one nobody thinks."""
    url = json.loads(os.environ.get("PALLAS_PEERS", "{}")).get("runner")
    return runners.Agent(url) if url else runners.StandIn()


def take_in(settings: Settings, tenants: list[str]) -> None:
    """Take in the documents of `tenants`, and say on stderr what could not be."""
    tools = Tools(open_store(settings.database, patience=_PATIENCE), embedder(settings), runner())
    use(tools)
    if tenants != [LIBRARY]:
        forget_others(tools.store, tenants)
    for tenant in tenants:
        report = ingest(tools.store, tools.embedder, DOCUMENTS / tenant, tenant)
        print(*report.problems, sep="\n", end="\n" if report.problems else "", file=sys.stderr)
        print(f"{tenant}: {report.read} documents read, {len(report.problems)} problems", file=sys.stderr, flush=True)


TOOLS: list[Tool] = [search_knowledge_base, lookup_entity, create_agent, list_agents, answer_alone]


def main() -> int:
    """Serve on PALLAS_BIND."""
    for_agents = sys.argv[1:] == [LIBRARY]
    there = sorted(path.name for path in DOCUMENTS.glob("*") if path.is_dir())
    try:
        take_in(Settings.read(), [LIBRARY] if for_agents else [tenant for tenant in there if tenant != LIBRARY])
    except Problem as error:
        print(error, file=sys.stderr)
        return 1
    functions = [library_search(LIBRARY)] if for_agents else TOOLS
    security = TransportSecuritySettings(allowed_hosts=os.environ["PALLAS_ALLOWED_HOSTS"].split(","))
    app = server(functions).streamable_http_app(stateless_http=True, transport_security=security)
    address, _, port = os.environ["PALLAS_BIND"].rpartition(":")
    uvicorn.run(app, host=address, port=int(port), log_level="warning", timeout_graceful_shutdown=3)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Stand-in MCP servers: `python -m standins.tools NAME` serves the tool of one of them on PALLAS_BIND.

Every answer names the host it was given on, so that it shows which container was really asked.
"""

from __future__ import annotations

import os
import socket
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

HOST = socket.gethostname()


def search_web(query: str) -> str:
    """Search the web."""
    return f"3 pages about {query!r} (argos on {HOST})"


def read_graph(query: str) -> str:
    """Ask the knowledge graph in Cypher."""
    return f"3 nodes for {query!r} (neo4j_cypher on {HOST})"


def run(command: str) -> str:
    """Run a shell command."""
    return f"`{command}` ended with 0 (kernos on {HOST})"


def list_repos() -> str:
    """List the repositories."""
    return f"pallas, daedalus (gitea on {HOST})"


TOOLS = {"argos": search_web, "neo4j_cypher": read_graph, "kernos": run, "gitea": list_repos}


def main() -> None:
    name = sys.argv[1]
    server = MCPServer(name, version="1.0.0", log_level="WARNING")
    server.tool(structured_output=False)(TOOLS[name])
    hosts = os.environ.get("PALLAS_ALLOWED_HOSTS", "127.0.0.1:*,localhost:*").split(",")
    app = server.streamable_http_app(
        stateless_http=True, transport_security=TransportSecuritySettings(allowed_hosts=hosts)
    )
    address, _, port = os.environ["PALLAS_BIND"].rpartition(":")
    uvicorn.run(app, host=address, port=int(port), log_level="warning", timeout_graceful_shutdown=3)


if __name__ == "__main__":
    main()

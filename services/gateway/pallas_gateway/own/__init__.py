"""The gateway's own MCP server at `/mcp`: tools of seed 002 and `agent.execute` of seed 003 (docs/gateway.md)."""

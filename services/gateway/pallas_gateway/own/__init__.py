"""The gateway's own MCP server at `/mcp`: seed 002, as far as it is there (docs/gateway.md)."""

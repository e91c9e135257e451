"""The registry as an MCP server of its own."""

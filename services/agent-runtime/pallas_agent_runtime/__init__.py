"""One agent as an MCP server, and the `pallas` command that runs a whole fleet as processes."""

"""Who calls: tokens checked before anything of MCP is read."""

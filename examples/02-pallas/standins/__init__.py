"""What stands in for the world: a model that follows a script, and MCP servers with made-up facts."""

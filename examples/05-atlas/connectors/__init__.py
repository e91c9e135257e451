"""Connectors to servers of the household's own: mail, a calendar, devices. Each is an MCP server by itself."""

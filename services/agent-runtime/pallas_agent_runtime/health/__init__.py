"""The health of the agent: its model provider and the MCP servers it uses."""

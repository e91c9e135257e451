"""How the agent is: its model provider and the MCP servers it uses."""

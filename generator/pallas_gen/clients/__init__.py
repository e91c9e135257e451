"""Configuration for MCP clients: the agents of a fleet, in the form and at the place that each client reads."""

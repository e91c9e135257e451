"""Who may call this agent: tokens checked before anything of MCP is read, and what is known of a caller afterwards."""

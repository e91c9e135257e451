"""Access of callers to this agent: tokens checked before anything of MCP is read, and what a caller may do then."""

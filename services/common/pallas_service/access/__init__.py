"""Authentication of callers: tokens are checked before anything of MCP is read."""

"""Talk to an agent as any MCP client does: one question, or a conversation."""

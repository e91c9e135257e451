"""What an MCP server (HTTP, events, stdio) and a provider of models may answer: bytes and values."""

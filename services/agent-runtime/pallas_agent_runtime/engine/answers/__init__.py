"""What an MCP server may answer: bytes and values, over HTTP, in a stream of events, and on stdio."""

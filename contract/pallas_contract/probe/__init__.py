"""One question to an MCP endpoint, in either era, without leaving a session behind."""

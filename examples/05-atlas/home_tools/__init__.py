"""The tools of the house, in one MCP server: weather, time, timers and reminders, tasks, notes."""

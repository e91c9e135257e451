"""The `pallas` command as people use it day by day: make a project, run it, ask it, look after it."""

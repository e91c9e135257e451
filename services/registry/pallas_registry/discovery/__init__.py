"""The addresses of the agents: by DNS, or as they were handed over."""

"""Where the agents are: addresses by DNS, or as they were handed over."""

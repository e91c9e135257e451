"""The registry of a fleet: finds the agents, probes them, and publishes what it knows (seed 000, section 1)."""

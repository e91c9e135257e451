"""What the gateway asks of its callers, for what may stand in front of it."""

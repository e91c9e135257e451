"""A fleet as it is -> agents.lock, and what differs from it."""

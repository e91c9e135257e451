"""The gateway's rules for its callers, in a form for an edge that stands in front of it."""

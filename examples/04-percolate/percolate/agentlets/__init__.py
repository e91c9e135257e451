"""Agents that users make: data with versions, run by one agent of the fleet, with answers that fit their schema."""

"""Agents outside of agents.yaml that register themselves and send heartbeats (seed 003, sections 3.2, 3.3 and 4)."""

"""Fleets that really run."""

"""The gateway of a fleet: one guarded door in front of its agents."""

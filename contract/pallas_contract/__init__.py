"""What the parts of a fleet say to each other. Imports nothing of ours; kept light for the container healthcheck."""

__version__ = "0.1.0"

"""The contract between the parts of a fleet. Imports nothing of ours; kept light for the container healthcheck."""

__version__ = "0.1.0"

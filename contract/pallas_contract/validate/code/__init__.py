"""The user's code against the fleet, read without running it: what would stop an agent at its start."""

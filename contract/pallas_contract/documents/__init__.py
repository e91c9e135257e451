"""The documents that agents and registry publish about themselves."""

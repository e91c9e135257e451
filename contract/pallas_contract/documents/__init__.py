"""What agents and registry publish about themselves."""

"""How the programs of a fleet are started and reached, the same for processes and containers."""

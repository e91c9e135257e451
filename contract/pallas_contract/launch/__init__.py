"""Commands and addresses of the programs of a fleet, the same for processes and containers."""

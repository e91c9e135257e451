"""The model of the fleet."""

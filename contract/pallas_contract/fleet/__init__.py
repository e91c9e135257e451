"""The fleet as it is written, with the places of its values."""

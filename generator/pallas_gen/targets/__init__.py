"""One decided fleet in the words of each target."""

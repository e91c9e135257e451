"""Building images: the kit's own from the code that is installed here, and the one of a fleet."""

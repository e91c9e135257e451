"""From the file to a fleet that can be run: every rule, with the place of what breaks it."""

"""The targets of the kit as a test starts them: each runs the same fleet in its own way, and leaves nothing behind."""

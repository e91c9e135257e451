"""The page for people, rendered from what is known."""

"""One call from its arguments to its progress, and what it passes on when it delegates."""

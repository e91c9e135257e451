"""Text to files on disk: nothing overwritten that a user wrote, nothing half written."""

"""The running fleet, on whichever target: where its registry is, what that says, its logs, its end."""

"""The audit: which calls were let through and what became of them, in files that show when they were changed."""

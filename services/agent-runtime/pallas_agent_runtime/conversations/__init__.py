"""Transcripts between the turns of a caller, in memory or in a file."""

"""Cassettes: what a real provider was asked and what it answered, recorded once and replayed without a key."""

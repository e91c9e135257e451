"""Requests to agents: decided by their message, forwarded as bytes."""

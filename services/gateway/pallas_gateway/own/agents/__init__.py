"""Agents as seed 002 calls them, by URI: those behind the gateway, and those that users have made."""

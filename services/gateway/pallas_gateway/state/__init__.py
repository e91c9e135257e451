"""The rows that the gateway keeps over a restart."""

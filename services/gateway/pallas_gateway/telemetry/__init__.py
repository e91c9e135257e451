"""Spans of the gateway, by the names of seed 002. `spans` needs the API only; `export` needs the SDK."""

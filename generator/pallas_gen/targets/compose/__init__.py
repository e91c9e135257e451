"""compose.yaml."""

"""The folder beside agents.yaml: what is there, and how it reaches a container."""

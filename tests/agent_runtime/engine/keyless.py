"""What it takes to make an instance of every provider without any key; read without fast-agent, which takes seconds."""

from __future__ import annotations

SEPARATE = frozenset({"bedrock"})
"""Amazon's package is no part of fast-agent's; without it there is no model, with or without a key."""
CONFIG = {"azure": {"resource_name": "x"}, "anthropic": {"vertex_ai": {"project_id": "p", "location": "l"}}}
"""fast-agent's configuration."""

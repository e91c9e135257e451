"""The MCP surface over an agent that a test brings along."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pallas_agent_runtime.config import settings
from pallas_agent_runtime.mcp_server import Surface
from pallas_contract.documents.health import Health
from pallas_contract.fleet import source
from pallas_contract.validate import load

HEALTH = Health("ok", datetime(2026, 3, 12, 15, 42, tzinfo=UTC), "")


def surface_of(agent: Any, **config: Any) -> Surface:
    """Return the surface of `jarvis`, whose entry in agents.yaml has `config` too."""
    data = {"name": "demo", "agents": {"jarvis": {"module": "agents.x", "port": 8201, **config}}}
    tree = source.parse(str(data), name="agents.yaml")
    own = settings.resolve(load.parse(tree), tree, "jarvis", Path("/project"), environ={})
    return Surface(own, agent, lambda: HEALTH, ())

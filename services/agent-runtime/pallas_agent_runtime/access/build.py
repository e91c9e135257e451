"""From `access` in agents.yaml to the gate of one agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pallas_agent_runtime.config.settings import Settings
from pallas_contract.launch import credentials
from pallas_service.access import arrangement
from pallas_service.access.arrangement import Arrangement


def arrange(settings: Settings, tokens: Mapping[str, str], keys_file: Path | None) -> Arrangement:
    """Return the gate of the agent. `tokens` maps caller -> token, `keys_file` is where `jwks_file` is to be found."""
    return arrangement.arrange(
        settings.agent.access,
        tokens,
        resource=credentials.resource(settings.fleet, settings.name, settings.placement),
        audience=credentials.audience(settings.fleet, settings.name, settings.placement),
        keys_file=keys_file,
    )

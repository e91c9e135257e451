"""Agents at fixed addresses: those of the supervisor where the fleet is processes, else the ports of agents.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pallas_contract import names
from pallas_registry.discovery.sighting import Endpoint, OnSighting, Sighting


class StaticDiscovery:
    """Discovery by a list of addresses."""

    def __init__(self, addresses: Mapping[str, str], default: Callable[[str], str]) -> None:
        """`addresses` maps agent -> `host:port`; `default` gives that of an agent added to the file since."""
        self.undeclared: tuple[str, ...] = ()
        self._addresses = addresses
        self._default = default

    async def sweep(self, agents: Sequence[str], on_sighting: OnSighting) -> None:
        for agent in agents:
            authority = self._addresses.get(agent) or self._default(agent)
            on_sighting(agent, Sighting((Endpoint(f"http://{authority}{names.MCP_PATH}"),)))

"""Agents at fixed addresses: those of the supervisor where the fleet is processes, else the ports of agents.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pallas_contract import limited_file, names
from pallas_contract.documents import absence
from pallas_contract.documents.reason import OK, Reason
from pallas_registry.discovery.sighting import Endpoint, OnSighting, Sighting


class StaticDiscovery:
    """Discovery by a list of addresses."""

    def __init__(
        self, addresses: Mapping[str, str], default: Callable[[str], str], absences: Path | None = None
    ) -> None:
        """`addresses` maps agent -> `host:port`; `default` gives that of an agent added to the file since.

        `absences` is the file in which the supervisor says why agents are not up.
        """
        self.undeclared: tuple[str, ...] = ()
        self._addresses = addresses
        self._default = default
        self._absences = absences

    async def sweep(self, agents: Sequence[str], on_sighting: OnSighting) -> None:
        absences = read_absences(self._absences)
        for agent in agents:
            authority = self._addresses.get(agent) or self._default(agent)
            endpoint = Endpoint(f"http://{authority}{names.MCP_PATH}")
            on_sighting(agent, Sighting((endpoint,), absence=absences.get(agent, OK)))


def read_absences(path: Path | None) -> Mapping[str, Reason]:
    """Return the supervisor's words; none where there is no such file, or none that can be read."""
    try:
        return absence.parse(limited_file.text(path)) if path else {}
    except (OSError, ValueError):
        return {}

"""The services of the fleet and how they are, as JSON: a document of the kit's own, for the seed knows agents only."""

from __future__ import annotations

import json

from pallas_contract import names
from pallas_contract.documents import server_json
from pallas_contract.documents.health import timestamp
from pallas_contract.launch import run_files
from pallas_contract.launch.addresses import Placement
from pallas_contract.launch.service_check import provides
from pallas_registry.fleet_file import FleetReading
from pallas_registry.prebuilt.documents import Document
from pallas_registry.state.agents import AgentStates

PATH = names.SERVICES_PATH


def document(reading: FleetReading, states: AgentStates, placement: Placement) -> Document:
    """Return the gateway and every service of the file, in its order; `since` is when it came into its state.

    `fleet` tells those who find a registry on a port whose it is. In a container nobody knows where the fleet file is
    on the machine.
    """
    fleet = {"name": reading.fleet.name, "placement": placement}
    if placement == "local" and reading.path:
        fleet["project"] = run_files.project_id(reading.path)
    entries = [
        {
            "name": name,
            "provides": provides(reading.fleet, name),
            **server_json.state_fields(states.condition(name).state, states.condition(name).reason),
            "since": timestamp(states.since(name)),
        }
        for name in states.agents
    ]
    return Document(
        json.dumps({"fleet": fleet, "services": entries}, ensure_ascii=False, separators=(",", ":")).encode()
    )

"""The services of the fleet and how they are, as JSON: a document of the kit's own, for the seed knows agents only."""

from __future__ import annotations

import json

from pallas_contract import names
from pallas_contract.documents import server_json
from pallas_contract.documents.health import timestamp
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch.service_check import provides
from pallas_registry.prebuilt.documents import Document
from pallas_registry.state.agents import AgentStates

PATH = names.SERVICES_PATH


def document(fleet: ResolvedFleet, states: AgentStates) -> Document:
    """Return the gateway and every service of the file, in its order; `since` is when it came into its state."""
    entries = [
        {
            "name": name,
            "provides": provides(fleet, name),
            **server_json.state_fields(states.condition(name).state, states.condition(name).reason),
            "since": timestamp(states.since(name)),
        }
        for name in states.agents
    ]
    return Document(json.dumps({"services": entries}, ensure_ascii=False, separators=(",", ":")).encode())

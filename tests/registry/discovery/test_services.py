"""Where services are, and how each is to be asked; of those that nobody can ask, why."""

from __future__ import annotations

import asyncio

import pytest

from pallas_contract.documents import absence
from pallas_contract.documents.reason import NOT_FOUND, Reason
from pallas_contract.fleet import source
from pallas_contract.validate import load
from pallas_registry.discovery.resolver import NotFound
from pallas_registry.discovery.services import ServiceDiscovery
from pallas_registry.discovery.sighting import Endpoint, Sighting

FLEET = """
name: demo
agents: {scout: {card: scout.md, port: 8101}}
services:
  own_tools: {module: tools.own, port: 8110}
  vectors: {image: qdrant, port: 6333, provides: other, command: [qdrant]}
  shy: {image: shy, port: 6334, health: {command: [check]}, command: [shy]}
  gone: {module: tools.gone, port: 8111}
"""
RECORDS = {"own-tools": frozenset({"10.0.0.1"}), "vectors": frozenset({"10.0.0.2"})}


async def resolve(host: str) -> frozenset[str]:
    if host not in RECORDS:
        raise NotFound
    return RECORDS[host]


@pytest.fixture
def fleet():
    return load.check(source.parse(FLEET, name="agents.yaml"))[0]


async def sweep(discovery: ServiceDiscovery, fleet) -> dict[str, Sighting]:
    sightings: dict[str, Sighting] = {}
    await discovery.sweep(tuple(fleet.services), sightings.__setitem__)
    return sightings


async def test_in_containers_dns_knows_and_the_file_says_what_to_ask(fleet) -> None:
    discovery = ServiceDiscovery(lambda: fleet, "container", resolve, sleep=asyncio.sleep, bound=asyncio.timeout)
    not_asked = Reason("NotProbed", "not probed: its health is a command in its container, `check`")
    assert await sweep(discovery, fleet) == {
        "own_tools": Sighting((Endpoint("http://own-tools:8080/mcp", "10.0.0.1", "mcp"),)),
        "vectors": Sighting((Endpoint("tcp://vectors:6333", "10.0.0.2", "tcp"),)),
        "shy": Sighting(problem=not_asked, unsure=True),
        "gone": Sighting(problem=NOT_FOUND),
    }


async def test_as_processes_at_their_ports_with_the_word_of_the_supervisor(fleet, tmp_path) -> None:
    path = tmp_path / "absences.json"
    ended = Reason("Exited", "exited with code 1")
    path.write_text(absence.dump({"gone": ended}))
    discovery = ServiceDiscovery(
        lambda: fleet, "local", resolve, absences=path, sleep=asyncio.sleep, bound=asyncio.timeout
    )
    sightings = await sweep(discovery, fleet)
    assert sightings["gone"] == Sighting((Endpoint("http://127.0.0.1:8111/mcp", kind="mcp"),), absence=ended)
    assert sightings["shy"].endpoints == (Endpoint("tcp://127.0.0.1:6334", kind="tcp"),)

"""Agents at fixed addresses, and what their supervisor says of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_contract.documents import absence
from pallas_contract.documents.reason import OK, Reason
from pallas_registry.discovery.sighting import Sighting
from pallas_registry.discovery.static import StaticDiscovery


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "absences.json"


@pytest.fixture
def discovery(path: Path) -> StaticDiscovery:
    return StaticDiscovery({"harper": "127.0.0.1:9001"}, lambda _: "127.0.0.1:9002", path)


async def sweep(discovery: StaticDiscovery) -> dict[str, Sighting]:
    sightings: dict[str, Sighting] = {}
    await discovery.sweep(["harper", "research"], sightings.__setitem__)
    return sightings


async def test_each_sweep_reads_what_the_supervisor_says(discovery: StaticDiscovery, path: Path) -> None:
    for reason in (Reason("Starting", "waits for model"), Reason("InputRefused", "agents.yaml: no")):
        path.write_text(absence.dump({"research": reason}))
        sightings = await sweep(discovery)
        assert sightings["research"].absence == reason
        assert sightings["harper"].absence == OK
        assert sightings["research"].endpoints[0].url == "http://127.0.0.1:9002/mcp"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
async def test_a_file_that_cannot_be_read_says_nothing(discovery: StaticDiscovery, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert (await sweep(discovery))["harper"].absence == OK


async def test_a_pipe_in_its_place_holds_up_nobody(discovery: StaticDiscovery, path: Path) -> None:
    os.mkfifo(path)
    assert (await sweep(discovery))["harper"].absence == OK


async def test_without_a_supervisor_nobody_says_anything(discovery: StaticDiscovery) -> None:
    assert (await sweep(discovery))["harper"].absence == OK

"""agents.full.yaml of examples/05-atlas in containers: tools that nobody reaches but through the door."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from pallas_testing.fleet.start import Running

from .examples import copied_from, shared_by
from .household import Household, household
from .projects import own_image
from .stack import Stack, running

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Household]:
    """The servers of the house, on this machine as containers see it."""
    client = docker.from_env()
    try:
        (config, *_) = client.networks.get("bridge").attrs["IPAM"]["Config"]
    finally:
        client.close()
    with household(tmp_path_factory.mktemp("house"), config["Gateway"]) as up:
        yield up


@pytest.fixture(scope="module")
def running_fleet(house: Household, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The example with all that it has, up for all tests here."""
    config = house.project(root / "examples" / "05-atlas", tmp_path_factory.mktemp("atlas"))
    shutil.copyfile(config.parent / "connectors" / "requirements.lock", config.with_name("requirements.lock"))
    with own_image(config), running(config) as fleet:
        yield fleet


def test_agents_reach_the_tools_through_the_door_alone(running_fleet: Running) -> None:
    stack = Stack(running_fleet)
    assert stack.connections("family", "home-tools", "mail", "gateway", "work") == [
        "refused",
        "refused",
        "connected",
        "refused",
    ]
    assert stack.connections("gateway", "home-tools", "mail", "family") == ["connected", "connected", "connected"]
    assert stack.connections("mail", "calendar", "home-tools", "family") == ["refused", "refused", "refused"]


globals().update(copied_from("05-atlas") | shared_by("full_atlas"))

"""examples/05-atlas in containers: tools that nobody reaches but through the door, with a volume of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pallas_testing.fleet.start import Running

from .examples import copied_from
from .projects import edited
from .stack import Stack, running

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def running_fleet(root, tmp_path_factory) -> Iterator[Running]:
    """The example, up for all tests here."""
    more = "registry: {probe_interval: 1}\n"
    with running(edited(root / "examples" / "05-atlas", tmp_path_factory.mktemp("atlas"), more=more)) as fleet:
        yield fleet


def test_agents_reach_the_tools_through_the_door_alone(running_fleet: Running) -> None:
    stack = Stack(running_fleet)
    assert stack.connections("family", "home-tools", "gateway", "work") == ["refused", "connected", "refused"]
    assert stack.connections("gateway", "home-tools", "family") == ["connected", "connected"]


globals().update(copied_from("05-atlas"))

"""agents.full.yaml of examples/05-atlas as processes on this machine; agents.yaml is in test_cluster_examples.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_testing.fleet import start
from pallas_testing.fleet.start import Running
from pallas_testing.targets.base import Order
from tests.connectors.servers import HERE

from .examples import copied_from, shared_by
from .household import Household, household

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Household]:
    """The servers of the house."""
    with household(tmp_path_factory.mktemp("house"), HERE) as up:
        yield up


@pytest.fixture(scope="module")
def running_fleet(house: Household, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The example with all that it has, for all tests here; the last one ends it."""
    folder = tmp_path_factory.mktemp("atlas")
    config = house.project(root / "examples" / "05-atlas", folder / "project")
    with start.running("processes", Order(config, folder / "running"), {}) as fleet:
        yield fleet


globals().update(copied_from("05-atlas") | shared_by("full_atlas"))

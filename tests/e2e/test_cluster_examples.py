"""The tests that a user may copy from an example, in a real Kubernetes; those of 02-pallas are in test_cluster.py."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from pallas_testing.fleet import Fleet
from pallas_testing.fleet.start import Running

from . import full_atlas
from .examples import copied_from
from .projects import edited, own_image
from .release import running
from .test_cluster_guarded import volumes

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("example", ["01-hello", "03-data-pool", "04-percolate"])
def test_an_example_holds_on_a_cluster(kubernetes: None, root: Path, tmp_path: Path, example: str) -> None:
    config = edited(root / "examples" / example, tmp_path, more="registry: {probe_interval: 1}\n")
    # nobody makes volumes in this cluster; that state outlives a pod is tested in test_cluster_guarded.py
    config.write_text(re.sub(r"\b(durable|state): true\b", r"\1: false", config.read_text()))
    build = (config.parent / "requirements.lock").exists()
    with own_image(config) if build else nullcontext(), running(config, build=build) as running_fleet:
        holds(example, running_fleet)


def test_atlas_holds_on_a_cluster_as_it_is(kubernetes: None, root: Path, tmp_path: Path) -> None:
    config = edited(root / "examples" / "05-atlas", tmp_path, more="registry: {probe_interval: 1}\n")
    places = tmp_path / "volumes"
    places.mkdir()
    # of the gateway and of the tools; where no class is the default, their claims take volumes of none
    with volumes(places, 2, "pallas-e2e-atlas", ""), running(config) as running_fleet:
        holds("05-atlas", running_fleet)
        full_atlas.test_the_house_is_a_page_that_a_phone_installs(Fleet(running_fleet))
        kept = {path.name for path in places.glob("*/*")}
    assert {"audit", "timers.db"} <= kept


def holds(example: str, running_fleet: Running) -> None:
    """Run the tests of an example, each on a fleet without the faults of the one before."""
    for test in copied_from(example).values():
        fleet = Fleet(running_fleet)
        test(fleet)
        fleet.restore()

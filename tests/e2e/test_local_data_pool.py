"""examples/03-data-pool as processes on this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_testing.fleet.start import Running

from . import local
from .examples import copied_from

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running_fleet(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The example for all tests here; the last one ends it."""
    with local.running(root / "examples" / "03-data-pool", tmp_path_factory.mktemp("pool")) as fleet:
        yield fleet


globals().update(copied_from("03-data-pool"))


def test_nothing_outlives_a_killed_supervisor(running_fleet: Running) -> None:
    fleet = local.Local(running_fleet)
    children = local.children(fleet.supervisor)
    assert len(children) == 10, "eight members, the guardian, and the process that agents are forked from"
    os.kill(fleet.supervisor, signal.SIGKILL)
    assert local.all_gone(children)

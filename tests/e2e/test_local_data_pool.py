"""examples/03-data-pool as processes on this machine."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_testing.fleet.start import Running

from . import local
from .examples import copied_from

pytestmark = pytest.mark.slow

REGISTRATION = (
    ", registration: {reach: [127.0.0.1], tokens: {cleaner: {file: secrets/data_cleaner.txt, agents: [data_cleaner]}}}"
)
"""The lines about registration that are a comment in agents.yaml."""


@pytest.fixture(scope="module")
def running_fleet(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The example for all tests here, open to an agent that registers itself; the last test ends it."""
    folder = tmp_path_factory.mktemp("pool")
    example = shutil.copytree(root / "examples" / "03-data-pool", folder / "03-data-pool")
    (example / "secrets").mkdir()
    (example / "secrets" / "data_cleaner.txt").write_text("t" * 32)
    config = example / "agents.yaml"
    config.write_text(config.read_text().replace("#  registered:", "  registered:"))
    with local.running(example, folder / "open", registry=REGISTRATION) as fleet:
        yield fleet


for tests in ("tests", "tests/faults", "tests/elsewhere"):
    globals().update(copied_from("03-data-pool", tests))


def test_nothing_outlives_a_killed_supervisor(running_fleet: Running) -> None:
    fleet = local.Local(running_fleet)
    children = local.children(fleet.supervisor)
    assert len(children) == 12, "ten members, the guardian, and the process that agents are forked from"
    os.kill(fleet.supervisor, signal.SIGKILL)
    assert local.all_gone(children)

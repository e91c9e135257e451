"""examples/05-atlas as processes on this machine, and what its gateway has written down."""

from __future__ import annotations

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
    with local.running(root / "examples" / "05-atlas", tmp_path_factory.mktemp("atlas")) as fleet:
        yield fleet


globals().update(copied_from("05-atlas"))

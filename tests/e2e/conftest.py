"""One Kubernetes for all tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import release


@pytest.fixture(scope="session")
def kubernetes(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """It runs, with the images of this checkout; each user takes a namespace of its own, each worker the same one.

    PALLAS_TEST_CLUSTER is a folder of several runs side by side that share it (tools/test).
    """
    session = tmp_path_factory.getbasetemp()
    alone = session.parent if "PYTEST_XDIST_WORKER" in os.environ else session
    with release.cluster(root, Path(os.environ.get("PALLAS_TEST_CLUSTER", alone))):
        yield

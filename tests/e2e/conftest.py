"""One Kubernetes for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import release


@pytest.fixture(scope="session")
def kubernetes(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """It runs, with the images of this checkout; each user takes a namespace of its own, each worker the same one."""
    with release.cluster(root, release.shared(tmp_path_factory)):
        yield

"""One Kubernetes for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import release


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those with a cluster at the end: it runs on until the session ends, and others measure time."""
    items.sort(key=lambda item: item.get_closest_marker("cluster") is not None)


@pytest.fixture(scope="session")
def kubernetes(root: Path) -> Iterator[None]:
    """It runs, with the images of this checkout; each user takes a namespace of its own."""
    with release.cluster(root):
        yield

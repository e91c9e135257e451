"""The unit tests of seed 002, as a user of examples/04-percolate runs them: no server, no model, no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from percolate.mcp.tools import Tools, use
from percolate.memory.store import Store

from tests.e2e.examples import copied_from


@pytest.fixture(autouse=True)
def memory(tmp_path: Path) -> Iterator[None]:
    """A memory with nothing in it, which somebody closes."""
    store = Store(tmp_path / "memory.db")
    use(Tools(store))
    yield
    store.close()


globals().update(copied_from("04-percolate", "tests/unit/mcp"))

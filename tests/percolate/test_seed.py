"""The unit tests of seed 002, as a user of examples/04-percolate runs them: no server, no model, no network."""

from __future__ import annotations

import pytest
from percolate.mcp.tools import Tools, use
from percolate.memory.store import Store

from tests.e2e.examples import copied_from

pytestmark = pytest.mark.sqlite


@pytest.fixture(autouse=True)
def memory(store: Store) -> None:
    """A memory with nothing in it, which somebody closes."""
    use(Tools(store))


globals().update(copied_from("04-percolate", "tests/unit/mcp"))

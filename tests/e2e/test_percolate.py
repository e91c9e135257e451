"""examples/04-percolate in containers: on an image that has its packages, and with a document that is malformed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pallas_testing.fleet.start import Running

from .examples import copied_from
from .projects import edited, own_image
from .stack import Stack, running

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def running_fleet(root, tmp_path_factory) -> Iterator[Running]:
    """The example with a document more, which nobody can read, up for all tests here."""
    more = "registry: {probe_interval: 1}\n"
    config = edited(root / "examples" / "04-percolate", tmp_path_factory.mktemp("percolate"), more=more)
    (config.parent / "documents" / "test-tenant" / "general" / "broken.pdf").write_text("no PDF at all")
    with own_image(config), running(config) as fleet:
        yield fleet


def test_what_cannot_be_read_is_named_in_the_log_of_a_memory_that_is_well(running_fleet: Running) -> None:
    log = Stack(running_fleet).target.logs("memory")
    assert "test-tenant/general/broken.pdf is damaged: " in log
    assert "test-tenant: 4 documents read, 1 problems" in log


def test_agents_have_no_way_to_the_memory_of_tenants(running_fleet: Running) -> None:
    stack = Stack(running_fleet)
    assert stack.connections("percolate_researcher", "memory", "library") == ["refused", "connected"]
    assert stack.connections("gateway", "memory", "library", "runner") == ["connected", "refused", "refused"]
    assert stack.connections("memory", "runner", "percolate-researcher") == ["connected", "refused"]


globals().update(copied_from("04-percolate"))

"""examples/04-percolate as processes on this machine, and what seed 002 says that a client of it gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from pallas_testing.fleet.start import Running

from . import local
from .examples import copied_from

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]


@pytest.fixture(scope="module")
def running_fleet(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The example for all tests here; the last one ends it."""
    with local.running(root / "examples" / "04-percolate", tmp_path_factory.mktemp("percolate")) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
def server(running_fleet: Running, monkeypatch: pytest.MonkeyPatch) -> str:
    """The one URL, for the tests of the seed too."""
    url = f"{running_fleet.target.url('gateway')}/mcp"
    monkeypatch.setenv("PERCOLATE_URL", url)
    return url


globals().update(copied_from("04-percolate"))
globals().update(copied_from("04-percolate", "tests/integration/mcp"))


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_with_one_url_finds_all_tools(server: str, era: str) -> None:
    async with Client(server, mode=era) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
    assert tools >= {"ask_agent", "search_knowledge_base", "lookup_entity"}

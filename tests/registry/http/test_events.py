"""How many follow `/events` at once, and from where."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pallas_registry.http.events import Streams
from pallas_registry.state.history import History


@pytest.fixture
def streams() -> Streams:
    return Streams(History(), run="run", limit=12)


async def fill(streams: Streams, address: str) -> list[AsyncIterator[bytes]]:
    """Open streams to `address` until it is refused one."""
    opened = []
    while streams.admits(address):
        opened.append(streams.follow("", address))
        await anext(opened[-1])
    return opened


async def test_nobody_takes_all_streams(streams: Streams) -> None:
    opened = [await fill(streams, address) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3")]
    assert list(map(len, opened)) == [6, 3, 2]
    assert streams.admits("10.0.0.4")
    for stream in opened[0]:
        await stream.aclose()
    assert streams.open == 5
    assert len(await fill(streams, "10.0.0.3")) == 3

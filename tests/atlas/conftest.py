"""The tools of examples/05-atlas, no package of the kit: a house in an empty folder, and a clock that a test moves."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.example_folder import make_importable

make_importable("05-atlas", "home_tools")

from home_tools.home import Home, opened  # noqa: E402
from home_tools.server import server  # noqa: E402
from home_tools.settings import Settings  # noqa: E402

NOON = 1_795_435_200.0
"""Monday 2026-11-23, 12:00 UTC."""


class Clock:
    """A clock that stands still until a test moves it, and lets waiting look again at once."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> float:
        return self.time

    async def wait(self, seconds: float, changed: asyncio.Event) -> None:
        await asyncio.sleep(0.01)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(Settings.read({}), state=tmp_path)


@pytest.fixture
def home(settings: Settings, clock: Clock) -> Iterator[Home]:
    house = opened(settings, clock)
    yield house
    house.timers.store.close()


@pytest.fixture
def call(home: Home) -> Callable[..., Any]:
    """Call a tool of one server through a real client of MCP; returns its result."""
    serving = functools.cache(lambda: server(home))  # 0.02 s, of which a test would take one for each of its calls

    async def called(name: str, **arguments: object) -> Any:
        async with Client(serving()) as client:
            return await client.call_tool(name, arguments)

    return called

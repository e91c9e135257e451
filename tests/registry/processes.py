"""A registry as a process of its own, and waiting for what it does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

DEADLINE = 60.0
"""Seconds until a test that waits for something gives up: generous, for a machine that does other work."""


@asynccontextmanager
async def registry(
    folder: Path, *, before: Sequence[str] = (), **env: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running `python -m pallas_registry` in `folder`, killed at the end if it is still there.

    `before` goes in front of the command (`prlimit --nofile=64`); it has to become the program itself.
    """
    process = await asyncio.create_subprocess_exec(
        *before,
        sys.executable,
        "-m",
        "pallas_registry",
        cwd=folder,
        env={"PATH": os.environ["PATH"], **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def until[T](ask: Callable[[], Awaitable[T]], good: Callable[[T], bool]) -> T:
    """The first answer that is good; httpx errors are answers of a server that is not there yet."""
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                answer = await ask()
                if good(answer):
                    return answer
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)

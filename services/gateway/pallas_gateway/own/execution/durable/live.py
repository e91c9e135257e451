"""One durable graph that is run, and those who wait for its answer."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.shared.exceptions import MCPError

from pallas_gateway.own.peers.peer import Progress


class Live:
    """The run of a graph with a certain body, of which `digest` is one."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting: list[Progress] = []

    def fail(self, error: MCPError) -> None:
        """Answer with an error, where there is no answer yet."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # there may be nobody to hear of it

    async def progress(self, done: float, total: float | None, text: str | None) -> None:
        """Tell all who wait of the progress."""
        for tell in tuple(self._waiting):
            await tell(done, total, text)

    async def wait(self, progress: Progress | None) -> dict[str, Any]:
        """Return the answer; who waits may go away, and the graph goes on.

        Raises:
            MCPError: there is none.
        """
        if progress is not None:
            self._waiting.append(progress)
        try:
            return await asyncio.shield(self.answer)
        finally:
            if progress is not None:
                self._waiting.remove(progress)

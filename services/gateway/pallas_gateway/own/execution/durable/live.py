"""One durable graph that is run, here or by another replica, and those who wait for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError

from pallas_gateway.own.execution.durable.journal import Graph
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers.peer import Progress


class Live:
    """A graph with a certain body that somebody runs. `callers` is how many wait for it here."""

    def __init__(self, graph: Graph) -> None:
        self.digest = graph.digest
        self.task_id: str = graph.params["meta"]["task_id"]
        self._tasks = len(graph.params["tasks"])
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.callers = 0
        self.run: int | None = None
        """Number of the run that this gateway was given; None while it is another replica's."""
        self.work: asyncio.Task[None] | None = None
        """What runs it here."""
        self._told = 0.0
        self._known: set[str] = set()
        self._waiting: list[Progress] = []

    @property
    def is_watched(self) -> bool:
        """Return whether somebody wants to hear of its progress."""
        return bool(self._waiting)

    def succeed(self, answer: dict[str, Any]) -> None:
        """Answer, where nobody was told anything else yet."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: MCPError) -> None:
        """Answer with an error, where there is no answer yet."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # there may be nobody to hear of it

    def leave(self) -> None:
        """Tell all who wait that this gateway ends, and how they come by the answer."""
        text = (
            "the gateway ends; what was begun of this graph goes on, with another replica or when the gateway starts"
            f" again: send it again with the task_id `{self.task_id}`"
        )
        self.fail(Failed("interrupted", text, more={"graph": self.task_id}))

    def lose(self) -> None:
        """Run it here no more: another replica does."""
        self.run = None
        if self.work is not None:
            self.work.cancel()

    async def progress(self, done: float, total: float | None, text: str | None) -> None:
        """Tell all who wait of the progress; one who takes over begins with what was told before."""
        if done <= self._told:
            return
        self._told = done
        for tell in tuple(self._waiting):
            await tell(done, total, text)

    async def tell(self, statuses: Mapping[str, str]) -> None:
        """Tell all who wait of the tasks that have ended at another replica, by their status."""
        new = [task for task in statuses if task not in self._known]
        before = len(self._known)
        self._known.update(new)
        for number, task in enumerate(new, before + 1):
            await self.progress(number, self._tasks, f"{task}: {statuses[task]}")

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

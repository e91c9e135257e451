"""Tasks of a graph in the order in which they can be run, side by side where nothing is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Literal

from mcp.shared.exceptions import MCPError

Status = Literal["success", "error", "skipped", "cancelled"]
AT_ONCE = 5
"""Tasks of a graph that are under way at once, as calls of a batch."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one task: `result` of one that succeeded, `error` of one that failed."""

    status: Status
    result: dict[str, Any] | None = None
    error: MCPError | None = None
    milliseconds: int = 0


Step = Callable[[str, Mapping[str, Any]], Awaitable[Outcome]]
"""Runs the task of an id with the results of all before it, by id; that it fails is an outcome and no exception."""


class Scheduler:
    """The run of one graph; `dependencies` of each task have no cycle. `outcomes` has those that have ended.

    A task that fails ends the graph, and those under way are cancelled, unless it is `optional`: then all that waits
    for it is skipped, and the others go on.
    """

    def __init__(self, dependencies: Mapping[str, set[str]], step: Step, optional: frozenset[str]) -> None:
        self._dependencies = dependencies
        self._step = step
        self._optional = optional
        self._some = asyncio.Semaphore(AT_ONCE)
        self._results: dict[str, Any] = {}
        self._running: dict[asyncio.Task[Outcome], str] = {}
        self.outcomes: dict[str, Outcome] = {}

    async def run(self) -> None:
        """Run all tasks, to the end or until one ends the graph. Who is cancelled cancels them all."""
        sorter = TopologicalSorter(self._dependencies)
        sorter.prepare()
        try:
            while sorter.is_active() and not self._is_failed():
                for task in sorter.get_ready():
                    if self._is_in_vain(task):
                        self.outcomes[task] = Outcome("skipped")
                        sorter.done(task)
                    else:
                        self._running[asyncio.create_task(self._bounded(task))] = task
                sorter.done(*await self._ended())
        finally:
            for unfinished in self._running:
                unfinished.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _bounded(self, task: str) -> Outcome:
        async with self._some:
            return await self._step(task, self._results)

    async def _ended(self) -> list[str]:
        """Return the tasks that have ended, at least one where any is running."""
        if not self._running:
            return []
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        ended = []
        for finished in done:
            task = self._running.pop(finished)
            outcome = self.outcomes[task] = finished.result()
            if outcome.status == "success":
                self._results[task] = outcome.result
            ended.append(task)
        return ended

    def _is_in_vain(self, task: str) -> bool:
        return not self._dependencies[task] <= self._results.keys()

    def _is_failed(self) -> bool:
        return any(outcome.status == "error" and task not in self._optional for task, outcome in self.outcomes.items())

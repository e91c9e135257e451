"""Graphs of tasks in memory: each is run as long as its caller waits, and is forgotten then."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from pallas_gateway.own.execution import run
from pallas_gateway.own.execution.envelope import Envelope
from pallas_gateway.own.execution.run import Around, Run
from pallas_gateway.own.peers.peer import Progress
from pallas_service.http.disconnect import attended


class Graphs:
    """Graphs that end with their caller's connection."""

    def __init__(self, around: Around) -> None:
        self._around = around

    async def answer(
        self, request: Request, message: dict[str, Any], head: Envelope, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Return the answer to a graph: the result of each task, or the error of the one that ended it.

        Raises:
            MCPError: it cannot be run, and nothing was.
        """
        params, dependencies = run.read(message)
        graph = Run(self._around, request, params, dependencies, progress=progress)
        await self._around.counted(request, self._around.tenant(request, params), "", graph.check)
        return {**head.head, **await attended(request, graph.answer())}

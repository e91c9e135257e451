"""Durable graphs: each goes on without its caller, and after a restart with what was not done yet (decision 0044)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from pallas_gateway.own.execution import run
from pallas_gateway.own.execution.durable import outcomes, sender
from pallas_gateway.own.execution.durable.journal import Graph, Journal, TooMany, graph_id
from pallas_gateway.own.execution.durable.live import Live
from pallas_gateway.own.execution.envelope import Envelope
from pallas_gateway.own.execution.run import Around, Run
from pallas_gateway.own.execution.scheduler import Outcome
from pallas_gateway.own.failures import Failed, invalid
from pallas_gateway.own.peers.peer import Progress
from pallas_service.access.caller import caller
from pallas_service.http.disconnect import attended
from pallas_service.sqlite_file import CannotStore

MOST_STARTS = 10
"""Times that a graph is begun after ends of the gateway in its middle: it may be what ends it."""
PATIENCE = 60.0
"""Seconds after a restart in which agents may come up that a graph needs."""
_WAITS = "confirmation_required"
"""Reason of an error that ends no graph: sent again, it goes on."""

log = structlog.get_logger(__name__)


class DurableGraphs:
    """Graphs that are in `journal` from before their first task to a day after their end."""

    def __init__(self, around: Around, journal: Journal) -> None:
        self._around = around
        self._journal = journal
        self._live: dict[str, Live] = {}
        self._claiming = asyncio.Lock()
        self._running: set[asyncio.Task[None]] = set()
        self._ending = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run what was under way when the gateway ended, and what is asked for; what is not done then is left so."""
        self._begin(self._resume())
        try:
            yield
        finally:
            self._ending = True
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def end(self) -> None:
        """Begin no task from now on; those under way may end, and are kept."""
        self._ending = True

    async def answer(
        self, request: Request, message: dict[str, Any], head: Envelope, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Return the answer to a graph, which is the same each time that its caller sends the same graph.

        Raises:
            MCPError: it cannot be run, its id is that of another graph, or it cannot be kept.
        """
        params, dependencies = run.read(message)
        tenant = self._around.tenant(request, params)
        graph = _graph(message["params"], request, tenant)

        async def admitted() -> None:
            entry = await _kept(self._journal.find(graph.id))
            if entry is None:
                await Run(self._around, request, params, dependencies).check()

        await self._around.counted(request, tenant, "", admitted)
        live = await self._claimed(graph)
        return {**head.head, **await attended(request, live.wait(progress))}

    async def _claimed(self, graph: Graph) -> Live:
        """Return the run of a graph, which is begun where nobody has begun it."""
        async with self._claiming:
            live = self._live.get(graph.id)
            if live is None:
                try:
                    entry, ended = await _kept(self._journal.begin(graph))
                except TooMany as error:
                    raise Failed("concurrency", f"Rate limit exceeded: {error}", 1) from None
                live = Live(entry.digest)
                if entry.answer is not None:
                    live.answer.set_result(entry.answer)
                elif entry.digest == graph.digest:
                    self._start(graph, live, ended, again=entry.starts > 1)
        if live.digest != graph.digest:
            raise invalid("meta.task_id", "is that of another graph of this caller")
        return live

    async def _resume(self) -> None:
        """Go on with the graphs that were under way."""
        try:
            for graph in await self._journal.unfinished():
                async with self._claiming:
                    if graph.id in self._live:
                        continue  # its caller came first
                    entry, ended = await self._journal.begin(graph)
                    if entry.starts > MOST_STARTS:
                        text = f"the gateway ended {MOST_STARTS} times while it ran this graph"
                        await self._journal.end(graph.id, Envelope({}).refusal(Failed("interrupted", text)))
                    elif entry.answer is None:
                        with suppress(Failed):  # it is logged, and its caller hears of it
                            self._start(graph, Live(graph.digest), ended, again=True)
        except CannotStore as error:
            log.error("graphs cannot be resumed", reason=str(error))

    def _start(self, graph: Graph, live: Live, ended: Mapping[str, str], *, again: bool) -> None:
        """Run a graph from what has `ended` of it.

        Raises:
            Failed: that was kept by a version that wrote it in another way.
        """
        try:
            before = {task: outcomes.read(text) for task, text in ended.items()}
        except (ValueError, LookupError, TypeError):
            log.error("what was kept of a graph cannot be read", graph=graph.id)
            raise Failed("failed", "what was kept of this graph cannot be read") from None
        self._live[graph.id] = live
        self._begin(self._run(graph, live, before, patience=PATIENCE if again else 0.0))

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, graph: Graph, live: Live, ended: Mapping[str, Outcome], *, patience: float) -> None:
        try:
            live.answer.set_result(await self._answered(graph, live, ended, patience))
        except MCPError as error:
            live.fail(error)
        except asyncio.CancelledError:
            live.fail(Failed("interrupted", "the gateway ends, and goes on with this graph when it starts again"))
            raise
        except Exception:
            log.exception("graph failed")
            live.fail(Failed("failed", "the gateway could not answer"))
        finally:
            del self._live[graph.id]

    async def _answered(
        self, graph: Graph, live: Live, ended: Mapping[str, Outcome], patience: float
    ) -> dict[str, Any]:
        try:
            params, dependencies = run.read({"params": graph.params})
            optional = {task.task_id for task in params.tasks if task.on_error == "skip"}

            async def keep(task: str, outcome: Outcome) -> None:
                if task in optional or not _waits(outcome.error):
                    await _kept(self._journal.step(graph.id, task, outcomes.written(outcome)))
                if self._ending:
                    await asyncio.Event().wait()  # what waits for this task begins after the restart

            request = sender.request(graph.sender)
            running = Run(
                self._around,
                request,
                params,
                dependencies,
                progress=live.progress,
                keep=keep,
                ended=ended,
                patience=patience,
            )
            running.begin()
            answer = await running.answer()
        except Failed as failure:
            if failure.reason == "not_stored":
                raise
            answer = Envelope({}).refusal(failure)
        except MCPError as error:  # its caller is no more in a tenant, or this version takes no such graph
            answer = Envelope({}).refusal(error)
        if answer.get("error", {}).get("data", {}).get("reason") == _WAITS:
            await _kept(self._journal.wait(graph.id))
        else:
            await _kept(self._journal.end(graph.id, answer))
        return answer


def _graph(params: Mapping[str, Any], request: Request, tenant: str) -> Graph:
    """Return the graph of a request: a retry is the same one with another time and another token of its progress."""
    meta = {key: value for key, value in params["meta"].items() if key != "timestamp"}
    same = {**params, "meta": meta}
    same.pop("_meta", None)
    verified = caller(request)
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    id_ = graph_id(tenant, verified.identity if verified else "", meta["task_id"])
    return Graph(id_, tenant, digest, same, sender.of(request))


def _waits(error: MCPError | None) -> bool:
    return isinstance(error, Failed) and error.reason == _WAITS


async def _kept[T](work: Awaitable[T]) -> T:
    try:
        return await work
    except CannotStore as error:
        log.error("graph cannot be kept", reason=str(error))
        raise Failed("not_stored", "the gateway cannot keep what becomes of this graph") from None

"""Durable graphs: each goes on without its caller, and after a restart with what was not done yet (decision 0044).

With several gateways one of them runs a graph, and another goes on with it when that one is gone (decision 0053).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import structlog
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from pallas_gateway.own.execution import run
from pallas_gateway.own.execution.durable import outcomes, sender
from pallas_gateway.own.execution.durable.journal import Begun, Graph, Journal, Lost, Step, TooMany, graph_id
from pallas_gateway.own.execution.durable.live import Live
from pallas_gateway.own.execution.durable.replicas import Replicas
from pallas_gateway.own.execution.envelope import Envelope
from pallas_gateway.own.execution.run import Around, Kept, Run
from pallas_gateway.own.execution.scheduler import Outcome
from pallas_gateway.own.failures import Failed, invalid
from pallas_gateway.own.peers.peer import Progress
from pallas_service.access.caller import caller
from pallas_service.http.disconnect import attended
from pallas_service.sqlite_file import CannotStore

MOST_STARTS = 10
"""Times that a graph is begun after ends of a gateway in its middle: it may be what ends it."""
PATIENCE = 60.0
"""Seconds after a restart in which agents may come up that a graph needs."""
_WAITS = "confirmation_required"
"""Reason of an error that ends no graph: sent again, it goes on."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Start:
    """A run by its number, with the outcomes that there are; `patience` is that of `Run`."""

    number: int
    ended: Mapping[str, Outcome]
    patience: float


class DurableGraphs:
    """Graphs that are in `journal` from before their first task to a day after their end."""

    def __init__(self, around: Around, journal: Journal) -> None:
        self._around = around
        self._journal = journal
        self._live: dict[str, Live] = {}
        self._claiming = asyncio.Lock()
        self._unreadable: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._storing: set[asyncio.Future[None]] = set()
        self._is_ending = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run what was under way when the gateway ended, and what is asked for; what is not done then is left so.

        With other replicas, go on with what theirs was too, and leave to them what is not done.
        """
        shared = self._journal.shared
        replicas = Replicas(shared, self._live, self._claiming) if shared else None
        for job in replicas.jobs(self._resume) if replicas else [self._resume_once()]:
            self._begin(job)
        try:
            yield
        finally:
            self.end()
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            await asyncio.gather(*self._storing, return_exceptions=True)
            if shared:
                with suppress(CannotStore):  # others then wait for the end of its lease
                    await shared.leave()

    def end(self) -> None:
        """Begin no task from now on; those under way may end, and are kept. Callers are told at once."""
        self._is_ending = True
        for live in self._live.values():
            live.leave()

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
        live.callers += 1  # before anything else runs: what nobody waits for is not followed
        try:
            return {**head.head, **await attended(request, live.wait(progress))}
        finally:
            live.callers -= 1

    async def _claimed(self, graph: Graph) -> Live:
        """Return the run of a graph, which is begun where nobody has begun it."""
        async with self._claiming:
            live = self._live.get(graph.id)
            if live is None:
                live = Live(graph)
                if self._is_ending:
                    live.leave()
                    return live
                try:
                    begun = await _kept(self._journal.begin(graph))
                except TooMany as error:
                    raise Failed("concurrency", f"Rate limit exceeded: {error}", 1) from None
                live.digest = begun.entry.digest
                if begun.run is not None:
                    self._start(graph, live, begun, patience=PATIENCE if begun.again else 0.0)
                elif begun.entry.state == "ended":
                    live.succeed(begun.entry.answer or {})
                elif begun.entry.digest == graph.digest:
                    self._live[graph.id] = live
        if live.digest != graph.digest:
            raise invalid("meta.task_id", "is that of another graph of this caller")
        return live

    async def _resume_once(self) -> None:
        try:
            await self._resume()
        except CannotStore as error:
            log.error("graphs cannot be resumed", reason=str(error))

    async def _resume(self) -> None:
        """Go on with the graphs that were under way, and that nobody runs.

        Raises:
            CannotStore: the journal cannot be used.
        """
        here = {id_ for id_, live in self._live.items() if live.run is not None}
        for graph in await self._journal.unfinished(here | self._unreadable):
            async with self._claiming:
                live = self._live.get(graph.id)
                if self._is_ending or (live is not None and live.run is not None):
                    continue  # its caller came first
                begun = await self._journal.begin(graph)
                if begun.run is None:
                    continue  # another replica did, or it has ended
                if begun.entry.starts > MOST_STARTS:
                    await self._journal.end(graph.id, begun.run, Envelope({}).refusal(_given_up()))
                    continue
                try:
                    self._start(graph, live or Live(graph), begun, patience=PATIENCE)
                except Failed as failed:  # it is logged
                    if live is not None:
                        live.fail(failed)
                        self._live.pop(graph.id, None)

    def _start(self, graph: Graph, live: Live, begun: Begun, *, patience: float) -> None:
        """Run a graph that was begun from what has ended of it.

        Raises:
            Failed: that was kept by a version that wrote it in another way.
        """
        try:
            before = {task: outcomes.read(text) for task, text in begun.ended.items()}
        except (ValueError, LookupError, TypeError):
            log.error("what was kept of a graph cannot be read", graph=graph.id)
            self._unreadable.add(graph.id)
            raise Failed("failed", "what was kept of this graph cannot be read") from None
        start = _Start(begun.run or 0, before, patience)
        live.run = start.number
        self._live[graph.id] = live
        live.work = self._begin(self._run(graph, live, start))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _run(self, graph: Graph, live: Live, start: _Start) -> None:
        try:
            live.succeed(await self._answered(graph, live, start))
        except Lost:
            log.warning("another replica goes on with a graph", graph=graph.id)
            if live.run == start.number:
                live.run = None
        except MCPError as error:
            if live.run == start.number:
                live.fail(error)
        except asyncio.CancelledError:
            if live.run == start.number:  # else this run alone ends, since another replica goes on with it
                live.leave()
                raise
        except Exception:
            log.exception("graph failed")
            if live.run == start.number:
                live.fail(Failed("failed", "the gateway could not answer"))
        finally:
            if live.run == start.number:
                del self._live[graph.id]

    async def _answered(self, graph: Graph, live: Live, start: _Start) -> dict[str, Any]:
        try:
            params, dependencies = run.read({"params": graph.params})
            optional = {task.task_id for task in params.tasks if task.on_error == "skip"}

            under_way: set[str] = set()

            async def begin(task: str) -> None:
                under_way.add(task)
                await self._held(graph)

            async def end(task: str, outcome: Outcome) -> None:
                if task in optional or not _waits(outcome.error):
                    step = Step(task, outcome.status, outcomes.written(outcome))
                    await self._stored(self._journal.step(graph.id, start.number, step))
                under_way.discard(task)
                if self._is_ending:
                    if not under_way:
                        await self._left(graph, live, start)
                    await asyncio.Event().wait()  # what waits for this task begins after the restart

            request = sender.request(graph.sender)
            running = Run(
                self._around,
                request,
                params,
                dependencies,
                progress=live.progress,
                kept=Kept(begin, end),
                ended=start.ended,
                patience=start.patience,
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
            await self._stored(self._journal.wait(graph.id, start.number, answer))
        else:
            await self._stored(self._journal.end(graph.id, start.number, answer))
        return answer

    async def _held(self, graph: Graph) -> None:
        """Return when no other replica can have begun a graph that is run here, as far as that is known."""
        shared = self._journal.shared
        while shared and not shared.holds(graph.id):  # noqa: ASYNC110 - its renewal may fail many times
            await asyncio.sleep(shared.pace.follow)

    async def _left(self, graph: Graph, live: Live, start: _Start) -> None:
        """Leave a graph to other replicas while this gateway ends, which may take as long as its longest call."""
        shared = self._journal.shared
        if shared is None:
            return
        async with self._claiming:  # else it could be renewed
            if live.run == start.number:
                live.run = None
                with suppress(CannotStore):  # it is let go with all others
                    await shared.leave(graph.id)

    async def _stored(self, work: Coroutine[Any, Any, None]) -> None:
        """Store something to the end, also when the gateway ends meanwhile."""
        storing = asyncio.ensure_future(work)
        self._storing.add(storing)
        storing.add_done_callback(self._heard)
        await _kept(asyncio.shield(storing))

    def _heard(self, storing: asyncio.Future[None]) -> None:
        self._storing.discard(storing)
        if not storing.cancelled():
            storing.exception()  # there may be nobody to hear of it


def _given_up() -> Failed:
    text = f"this graph was begun {MOST_STARTS} times, and each time the gateway ended or could not keep it"
    return Failed("interrupted", text)


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

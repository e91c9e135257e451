"""One graph that is run: everything is checked first, then its tasks, within the time of the caller's tenant."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from pallas_gateway.own.admission import Admission, Asked
from pallas_gateway.own.execution import envelope, graph
from pallas_gateway.own.execution.envelope import Envelope
from pallas_gateway.own.execution.graph import GraphParams, Task
from pallas_gateway.own.execution.scheduler import Outcome, Scheduler
from pallas_gateway.own.execution.steps import Steps, Work
from pallas_gateway.own.failures import Failed, invalid
from pallas_gateway.own.peers import peer
from pallas_gateway.own.peers.peer import Progress
from pallas_service.access.caller import caller
from pallas_service.http.disconnect import HungUp

FIRST_PAUSE = 0.2
"""Seconds before the first retry; each next one waits twice as long."""
LONGEST_PAUSE = 10.0
"""Seconds between two attempts."""
_AGAIN = frozenset({"unreachable", "interrupted", "timeout", "function_error", "concurrency"})
"""Reasons of an error that may be none the next time."""
_NOTHING_RAN = frozenset({"unreachable", "concurrency", "rate"})
"""Those with which no agent was asked."""
_AWAY = frozenset({"unreachable", "interrupted", "timeout", "not_admitted", "failed"})
"""Reasons of an error that is the agent's own, whatever the graph asks it for."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a graph that is kept waits for.

    `begin` takes the id of a task before each attempt, `end` its outcome, before any task that waits for it begins.
    """

    begin: Callable[[str], Awaitable[None]]
    end: Callable[[str, Outcome], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Around:
    """What all graphs are run with."""

    admission: Admission
    steps: Steps
    sleep: Sleep = asyncio.sleep

    def tenant(self, request: Request, params: GraphParams) -> str:
        """Return the name of the tenant that a graph is run for, which may be none."""
        return params.meta.tenant_id or self.admission.tenant(caller(request))

    async def counted[T](
        self,
        request: Request,
        tenant: str,
        function: str,
        work: Callable[[], Awaitable[T]],
        *,
        agent: str = "",
        arguments: object = None,
    ) -> T:
        """Return the result of `work`, which is one request of the tenant."""
        asked = Asked(envelope.METHOD, function, self.steps.host(agent), arguments=arguments)
        return await self.admission.counted(request, asked, work, tenant=tenant)


def read(message: dict[str, Any]) -> tuple[GraphParams, dict[str, set[str]]]:
    """Return the graph of a message, with the dependencies of each task.

    Raises:
        MCPError: it is none that can be run.
    """
    params = envelope.checked(GraphParams, message)
    try:
        return params, graph.check(params)
    except RecursionError:
        raise invalid("tasks", "are too deep") from None


class Run:
    """One graph. `request` says for whom; `ended` has the outcomes of tasks that are not run again.

    For `patience` seconds an attempt with which no agent was asked does not count.
    """

    def __init__(
        self,
        around: Around,
        request: Request,
        params: GraphParams,
        dependencies: Mapping[str, set[str]],
        *,
        progress: Progress | None = None,
        kept: Kept | None = None,
        ended: Mapping[str, Outcome] | None = None,
        patience: float = 0.0,
    ) -> None:
        self._around = around
        self._request = request
        self._params = params
        self._tasks = {task.task_id: task for task in params.tasks}
        self._progress = progress
        self._kept = kept
        self._before = ended or {}
        self._tenant = around.tenant(request, params)
        self._ended = 0
        self._room = peer.MOST
        now = time.monotonic()
        self._until = now
        self._patient_until = now + patience
        optional = frozenset(task.task_id for task in params.tasks if task.on_error == "skip")
        self._scheduler = Scheduler(dependencies, self._step, optional)

    async def check(self) -> None:
        """Check that all tasks can be run, as far as that is known before, and begin the time of the graph.

        Raises:
            MCPError: one cannot.
        """
        seconds = self.begin()
        for index, task in enumerate(self._params.tasks):
            literal = not any(graph.references(task.input))
            optional = task.on_error == "skip"
            work = self._work(task, task.input, min(seconds, task.timeout or seconds) if optional else seconds)
            try:
                await self._around.steps.check(self._request, work, with_input=literal)
            except Failed as failure:
                if optional and failure.reason in _AWAY:
                    continue  # the task fails alone, when it is run
                failure.error.data |= {"task_id": task.task_id, "agent_id": task.agent_id}
                raise
            except HungUp:
                raise
            except MCPError as error:
                raise invalid(f"tasks.{index}.{error.error.data['field']}", error.error.data["reason"]) from None

    def begin(self) -> float:
        """Begin the time of the graph, and return its seconds; raises what `Admission.allowance` raises."""
        seconds = self._around.admission.seconds_of(caller(self._request), self._tenant)
        self._until = time.monotonic() + seconds
        return seconds

    async def answer(self) -> dict[str, Any]:
        """Run all tasks, and return the answer without its head: their results, or the error of the one that ended it.

        Raises:
            MCPError: an outcome could not be kept.
        """
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._until - time.monotonic()) as deadline:
                await self._scheduler.run()
        except TimeoutError:
            if not deadline.expired():
                raise
            return self._failed("", Failed("timeout", "Timeout: the graph was not done in time"))
        outcomes = self._scheduler.outcomes
        for task, outcome in outcomes.items():
            if outcome.error is not None and self._tasks[task].on_error == "fail":
                return self._failed(task, outcome.error)
        answer = Envelope({}).answer({"tasks": self._entries()}, round(1000 * (time.perf_counter() - started)))
        complete = all(outcome.status == "success" for outcome in outcomes.values())
        answer["meta"]["status"] = "success" if complete else "partial"
        return answer

    async def _step(self, name: str, results: Mapping[str, Any]) -> Outcome:
        if name in self._before:
            outcome = self._before[name]
            self._room -= len(json.dumps(outcome.result))
        else:
            started = time.perf_counter()
            outcome = await self._attempts(self._tasks[name], results)
            outcome = replace(outcome, milliseconds=round(1000 * (time.perf_counter() - started)))
            if self._kept is not None:
                await self._kept.end(name, outcome)
        self._ended += 1
        if self._progress is not None:
            await self._progress(self._ended, len(self._tasks), f"{name}: {outcome.status}")
        return outcome

    async def _attempts(self, task: Task, results: Mapping[str, Any]) -> Outcome:
        """Run a task until it has a result, or no retry is left: at least once, with one id."""
        tried = 0
        for attempt in count():
            if self._kept is not None:
                await self._kept.begin(task.task_id)
            try:
                return Outcome("success", await self._attempt(task, results))
            except HungUp:
                raise
            except MCPError as error:
                if not self._is_early(error):
                    if tried == task.retries or not (isinstance(error, Failed) and error.reason in _AGAIN):
                        return Outcome("error", error=error)
                    tried += 1
            await self._around.sleep(min(FIRST_PAUSE * 2 ** min(attempt, 8), LONGEST_PAUSE))
        raise AssertionError

    def _is_early(self, error: MCPError) -> bool:
        nothing_ran = isinstance(error, Failed) and error.reason in _NOTHING_RAN
        return nothing_ran and time.monotonic() < self._patient_until

    async def _attempt(self, task: Task, results: Mapping[str, Any]) -> dict[str, Any]:
        remaining = self._until - time.monotonic()
        work = self._work(task, graph.filled(task.input, results), min(remaining, task.timeout or remaining))
        result: dict[str, Any] = await self._around.counted(
            self._request,
            self._tenant,
            task.function,
            lambda: self._around.steps.execute(self._request, work),
            agent=task.agent_id,
            arguments=work.input,
        )
        self._room -= len(json.dumps(result))
        if self._room < 0:  # all are in memory until the last one is there
            raise Failed("failed", f"the results of a graph may have {peer.MOST} bytes together")
        return result

    def _work(self, task: Task, value: Mapping[str, Any], seconds: float) -> Work:
        whole_id = graph.whole_id(self._params, task)
        return Work(task.agent_id, task.function, value, whole_id, seconds, hurried=task.timeout is not None)

    def _entries(self) -> dict[str, Any]:
        """Return what became of each task, in the order of the request."""
        cancelled = Outcome("cancelled")
        return {task: self._entry(task, self._scheduler.outcomes.get(task, cancelled)) for task in self._tasks}

    def _entry(self, task: str, outcome: Outcome) -> dict[str, Any]:
        entry: dict[str, Any] = {"status": outcome.status}
        if outcome.error is not None:
            entry["error"] = Envelope({}, self._tasks[task].agent_id).refusal(outcome.error)["error"]
        if outcome.status == "success":
            entry["result"] = outcome.result
        if outcome.status in ("success", "error"):
            entry["execution_time_ms"] = outcome.milliseconds
        return entry

    def _failed(self, task: str, error: MCPError) -> dict[str, Any]:
        """Return the error of the graph: that of the task which ended it, with what became of the others."""
        agent = self._tasks[task].agent_id if task else ""
        answer = Envelope({}, agent).refusal(error)
        named = {"task_id": task} if task else {}
        answer["error"]["data"] = {**answer["error"]["data"], **named, "tasks": self._entries()}
        return answer

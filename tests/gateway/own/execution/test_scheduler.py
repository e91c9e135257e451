"""The order of tasks, what their errors do to others, and their end; without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from pallas_gateway.own.execution.scheduler import AT_ONCE, Outcome, Scheduler

DIAMOND: dict[str, set[str]] = {"d": {"b", "c"}, "b": {"a"}, "c": {"a"}, "a": set()}
DEADLINE = 60
ERROR = Outcome("error", error=MCPError(-32000, "failed"))


class Recorder:
    """A step that notes what it is called with; `failing` tasks fail, and `waiting` ones never end.

    `stuck` has each of the latter once it waits.
    """

    def __init__(self, failing: str = "", waiting: str = "") -> None:
        self.began: list[str] = []
        self.results: dict[str, set[str]] = {}
        self.cancelled: list[str] = []
        self.stuck: asyncio.Queue[str] = asyncio.Queue()
        self.most = 0
        self._under_way = 0
        self._failing = failing
        self._waiting = waiting

    async def __call__(self, task: str, results: Mapping[str, Any]) -> Outcome:
        self.began.append(task)
        self.results[task] = set(results)
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            if task in self._waiting:
                self.stuck.put_nowait(task)
                await asyncio.Event().wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled.append(task)
            raise
        finally:
            self._under_way -= 1
        return ERROR if task in self._failing else Outcome("success", {"by": task})


async def run(step: Recorder, dependencies: Mapping[str, set[str]] = DIAMOND, optional: str = "") -> dict[str, str]:
    scheduler = Scheduler(dependencies, step, frozenset(optional))
    async with asyncio.timeout(DEADLINE):
        await scheduler.run()
    return {task: outcome.status for task, outcome in scheduler.outcomes.items()}


async def test_a_task_has_the_results_of_all_that_it_waits_for() -> None:
    step = Recorder()
    assert await run(step) == dict.fromkeys("abcd", "success")
    assert (step.began[0], step.began[-1], step.most) == ("a", "d", 2)
    assert step.results["d"] == {"a", "b", "c"}


async def test_no_more_than_a_few_are_under_way() -> None:
    step = Recorder()
    await run(step, {str(number): set() for number in range(20)})
    assert (len(step.began), step.most) == (20, AT_ONCE)


async def test_a_task_that_fails_ends_the_graph_and_what_is_under_way() -> None:
    step = Recorder(failing="b", waiting="c")
    assert await run(step) == {"a": "success", "b": "error"}
    assert step.cancelled == ["c"]
    assert "d" not in step.began


async def test_what_waits_for_an_optional_one_is_skipped_and_the_others_go_on() -> None:
    step = Recorder(failing="b")
    wider = {**DIAMOND, "e": {"d"}, "f": {"c"}}
    statuses = await run(step, wider, optional="b")
    assert statuses == {"a": "success", "b": "error", "c": "success", "d": "skipped", "e": "skipped", "f": "success"}


async def test_who_is_cancelled_cancels_all() -> None:
    step = Recorder(waiting="bc")
    running = asyncio.create_task(run(step))
    async with asyncio.timeout(DEADLINE):
        assert {await step.stuck.get(), await step.stuck.get()} == {"b", "c"}
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert sorted(step.cancelled) == ["b", "c"]

"""Progress lines of a planner's own requests, in the order in which fast-agent tells of its plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fast_agent.workflow_telemetry import PlanEntry

from pallas_agent_runtime.calls import planning
from pallas_agent_runtime.calls.progress import Progress


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def progress(lines: list[str]) -> Progress:
    async def report(value: float, total: float | None, message: str) -> None:
        lines.append(message)

    return Progress(report, {"plan": "chief"}, frozenset())


async def run(planner: Any, lines: list[str]) -> None:
    """Tell of two rounds and the end, as `IterativePlanner._execute_plan` does; a line for each request in between."""
    entries: list[PlanEntry] = []
    for name in ("first", "second"):
        lines.append(f"asks for the {name} entry")
        entry = PlanEntry(name, "high", "pending")
        entries.append(entry)
        await planner.plan_telemetry.update_plan(entries)
        for status in ("in_progress", "completed"):
            entry.status = status  # type: ignore[assignment]
            await planner.plan_telemetry.update_plan(entries)
    lines.append("asks whether it is done")
    await planner.plan_telemetry.update_plan(entries)
    lines.append("asks for the answer")


async def test_each_request_has_its_line_before_it(progress: Progress, lines: list[str]) -> None:
    planner = SimpleNamespace(plan_telemetry=None)
    await planning.follow({"plan": planner, "finder": SimpleNamespace()}, "plan", progress)
    await run(planner, lines)
    assert lines == [
        "chief step 1 (llm)",
        "asks for the first entry",
        "chief step 2 (llm)",
        "asks for the second entry",
        "chief step 3 (llm)",
        "asks whether it is done",
        "chief step 4 (llm)",
        "asks for the answer",
    ]


async def test_of_a_planner_below_another_agent_the_first_line_comes_with_its_plan(
    progress: Progress, lines: list[str]
) -> None:
    planner = SimpleNamespace(plan_telemetry=None)
    await planning.follow({"chain": SimpleNamespace(), "below": planner}, "chain", progress)
    await run(planner, lines)
    assert [line for line in lines if "step" in line] == [f"below step {number} (llm)" for number in (1, 2, 3, 4)]
    assert lines.index("below step 1 (llm)") == 1


async def test_a_turn_without_progress_forgets_that_of_the_one_before(progress: Progress, lines: list[str]) -> None:
    planner = SimpleNamespace(plan_telemetry=None)
    await planning.follow({"plan": planner}, "plan", progress)
    await planning.follow({"plan": planner}, "plan", None)
    assert planner.plan_telemetry is None
    assert lines == ["chief step 1 (llm)"]

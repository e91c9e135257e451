"""A planner's own requests to its model -> progress lines: fast-agent tells of its plan, and of no step of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pallas_agent_runtime.calls.progress import Progress


class PlanReport:
    """The progress of one planner in one turn. It has the method of fast-agent's `PlanTelemetryProvider` protocol.

    A planner asks its model before there is an entry, and again each time when all entries are done: for the next ones,
    or for the answer.
    """

    def __init__(self, progress: Progress, agent: str) -> None:
        self._progress = progress
        self._agent = agent
        self._steps = 0

    async def step(self) -> None:
        """Send the line of one more request to the model."""
        self._steps += 1
        await self._progress.step(self._agent, self._steps)

    async def update_plan(self, entries: Sequence[Any]) -> None:
        """Take the entries of the plan as they are now."""
        # the first line of a planner that another agent runs: nobody knew when it began
        if not self._steps or all(entry.status == "completed" for entry in entries):
            await self.step()


async def follow(agents: Mapping[str, Any], target: str, progress: Progress | None) -> None:
    """Have every planner among `agents` report to `progress`, or to nobody; `target` begins with this turn."""
    for name, agent in agents.items():
        if not hasattr(agent, "plan_telemetry"):
            continue
        report = PlanReport(progress, name) if progress else None
        agent.plan_telemetry = report
        if report and name == target:
            await report.step()

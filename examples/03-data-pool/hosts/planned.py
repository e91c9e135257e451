"""An orchestrator whose plan a model makes: `python -m hosts.planned ACME`. The gateway decides what it may do."""

from __future__ import annotations

import sys
from typing import Any

from hosts import gateway, report
from hosts.plain import options

ATTEMPTS = 2
"""Plans that the model may make: one, and one more when it is told what is wrong with it."""


def ask(address: str, task_id: str, message: str) -> list[dict[str, Any]]:
    """Return the plan that the agent `planner` makes.

    Raises:
        gateway.Failed: it makes none.
    """
    asking = {"agent_id": "planner", "function": "send_message", "input": {"message": message}}
    tasks = gateway.execute(address, f"{task_id}.plan", **asking).get("tasks")
    if not isinstance(tasks, list):
        raise gateway.Failed("planner: its answer has no `tasks`", refused=True)
    return tasks


def main() -> int:
    """Have a plan made and run, and write the report."""
    asked = options(__doc__)
    task_id = f"{asked.symbol}-{asked.id}"
    message = asked.symbol
    for _ in range(ATTEMPTS):
        try:
            tasks = ask(asked.gateway, task_id, message)
            result = gateway.execute(asked.gateway, task_id, tasks=tasks)
        except gateway.Failed as failure:
            print(f"no report: {failure}", file=sys.stderr)
            if not failure.refused:
                return 1
            message = f"{asked.symbol}\nThis plan was refused: {failure}"
        else:
            print(report.write(asked.to, asked.symbol, tasks, result["tasks"]))
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())

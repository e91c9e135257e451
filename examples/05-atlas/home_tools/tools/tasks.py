"""add_task, list_tasks, move_task, comment_task, delete_task."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from home_tools.files.task import COLUMNS, Column, Priority, Task
from home_tools.home import Home
from home_tools.tools import Tools, both

Id = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^/\x00]+$", description="Its id, or its title")]
Line = Annotated[str, Field(min_length=1, max_length=2000)]


class Listed(BaseModel):
    """A task."""

    id: str
    title: str
    column: Column
    priority: Priority
    text: str


class Tasks(BaseModel):
    """The tasks that can be read, and what is wrong with other documents on the board."""

    tasks: list[Listed]
    problems: list[str]


def tools(home: Home) -> Tools:
    """Return them."""

    async def add_task(
        title: Annotated[str, Field(min_length=1, max_length=200, description="Task title", pattern=r"\S")],
        description: Annotated[str, Field(max_length=20_000, description="Task description")] = "",
        priority: Priority = "medium",
    ) -> str:
        task = await asyncio.to_thread(home.board.add, title, description, priority)
        return f"Task {task.id} is on the board, in {task.column}, with priority {task.priority}."

    async def list_tasks(column: Column | None = None) -> Annotated[CallToolResult, Tasks]:
        shown = await asyncio.to_thread(home.board.shown)
        tasks = [task for task in shown.tasks if column in (None, task.column)]
        columns = {name: [_shown(task) for task in tasks if task.column == name] for name in COLUMNS}
        lines = [f"{name}: {', '.join(there)}" for name, there in columns.items() if there]
        lines += [f"cannot be read: {problem}" for problem in shown.problems]
        data = {"tasks": [asdict(task) for task in tasks], "problems": shown.problems}
        return both("\n".join(lines) or "The board is empty.", data)

    async def move_task(task: Id, column: Column) -> str:
        moved = await asyncio.to_thread(home.board.move, task, column)
        return f"{moved.title} is in {moved.column}."

    async def comment_task(task: Id, comment: Line) -> str:
        commented = await asyncio.to_thread(home.board.comment, task, comment)
        return f"{commented.title} has your comment."

    async def delete_task(task: Id) -> str:
        await asyncio.to_thread(home.board.delete, task)
        return f"{task} is deleted."

    return {
        "add_task": add_task,
        "list_tasks": list_tasks,
        "move_task": move_task,
        "comment_task": comment_task,
        "delete_task": delete_task,
    }


def _shown(task: Task) -> str:
    return f"{task.title} ({task.id}, {task.priority})"

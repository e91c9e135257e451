"""The Kanban board of the house: a Markdown file for each task, in columns by its `status`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from pathlib import Path

from home_tools.files import task
from home_tools.files.folder import Folder
from home_tools.files.task import Column, Priority, Task
from home_tools.problems import NotThere, Problem

FOLDER = "family-agent-config/tasks/home"
_SUFFIX = ".md"


@dataclass(frozen=True, slots=True)
class Shown:
    """The tasks that can be read, and what is wrong with the others, a line each."""

    tasks: list[Task] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Board:
    """The tasks below the state of the service."""

    def __init__(self, root: Path, today: Callable[[], date]) -> None:
        self._folder = Folder(root, FOLDER)
        self._today = today

    def add(self, title: str, text: str, priority: Priority) -> Task:
        """Make a task, in the first column; one of the same title gets a number.

        Raises:
            Problem: there is no room.
        """
        title = " ".join(title.split())
        document = task.document(title, text, priority, self._today().isoformat())
        taken = set(self._folder.names(_SUFFIX))
        stem = task.slug(title)
        for number in count(1):
            name = f"{stem}{f'-{number}' if number > 1 else ''}{_SUFFIX}"
            if name in taken:
                continue
            try:
                self._folder.add(name, document)
            except Problem:
                if name not in self._folder.names(_SUFFIX):
                    raise
                continue  # somebody else was faster
            return task.parse(name, document)
        raise AssertionError  # numbers do not end

    def shown(self) -> Shown:
        """Return all tasks, the high ones first; one that cannot be read hides no other."""
        shown = Shown()
        for name in self._folder.names(_SUFFIX):
            try:
                shown.tasks.append(task.parse(name, self._folder.read(name)))
            except NotThere:
                continue  # deleted meanwhile
            except Problem as error:
                shown.problems.append(str(error))
        shown.tasks.sort(key=lambda each: (task.COLUMNS.index(each.column), task.PRIORITIES.index(each.priority)))
        return shown

    def move(self, task_id: str, column: Column) -> Task:
        """Move a task to another column.

        Raises:
            Problem: there is no such task, it cannot be read, or there is no room.
        """
        name = self._name(task_id)
        return task.parse(name, self._folder.change(name, lambda content: task.moved(name, content, column)))

    def comment(self, task_id: str, comment: str) -> Task:
        """Add a line to a task.

        Raises:
            Problem: as of `move`.
        """
        name = self._name(task_id)
        day = self._today().isoformat()
        return task.parse(name, self._folder.change(name, lambda content: task.commented(name, content, comment, day)))

    def delete(self, task_id: str) -> None:
        """Delete a task.

        Raises:
            NotThere: there is none.
        """
        self._folder.remove(self._name(task_id))

    def _name(self, task_id: str) -> str:
        """Return the name of the file of a task, which may be called by its title too."""
        names = self._folder.names(_SUFFIX)
        for name in (f"{task_id}{_SUFFIX}", f"{task.slug(task_id)}{_SUFFIX}"):
            if name in names:
                return name
        known = ", ".join(name.removesuffix(_SUFFIX) for name in names[:10])
        raise NotThere(f"there is no task `{task_id}`" + (f", only {known}" if known else " on the board"))

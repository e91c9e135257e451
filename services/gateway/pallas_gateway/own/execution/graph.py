"""A graph of tasks in one `agent.execute`: what a task may be, what it waits for, and where its input comes from.

Seed 003 has the words (task DAGs, section 2) and no form; this one is ours (decision 0022, Graphs of calls).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

from pydantic import Field

from pallas_gateway.own.execution.envelope import TASK_ID, Meta, Name, Strict
from pallas_gateway.own.failures import Failed, invalid

MOST_TASKS = 100
"""Tasks of a graph."""
MOST_RETRIES = 5
FROM = "$from"
"""Key of a reference: the id of the task whose result is taken."""
PATH = "path"
"""Key of a reference: a JSON pointer (RFC 6901) into that result; all of it where there is none."""
_LONGEST_ID = 64
"""Characters of an id as agents take them."""

Id = Annotated[str, Field(pattern=TASK_ID)]


class Task(Strict):
    """One task. `depends_on` adds to the tasks that its `input` refers to."""

    task_id: Id
    agent_id: Name
    function: Name
    input: dict[str, Any] = Field(default_factory=dict)
    depends_on: list[Id] = Field(default_factory=list, max_length=MOST_TASKS)
    timeout: float | None = Field(default=None, gt=0, le=3600, allow_inf_nan=False)
    retries: int = Field(default=0, ge=0, le=MOST_RETRIES)
    on_error: Literal["fail", "skip"] = "fail"

    def dependencies(self) -> set[str]:
        """Return the ids of the tasks that must have a result before this one begins."""
        return {*self.depends_on, *(task for task, _ in references(self.input))}


class GraphParams(Strict):
    """`params` of a graph; `_meta` is MCP's."""

    tasks: list[Task] = Field(min_length=1, max_length=MOST_TASKS)
    meta: Meta
    mcp: Any = Field(default=None, alias="_meta")


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield id and path of each reference in `value`.

    Raises:
        MCPError: one has another form.
    """
    if isinstance(value, dict) and FROM in value:
        task = value[FROM]
        path = value.get(PATH, "")
        if not value.keys() <= {FROM, PATH} or not isinstance(task, str) or not _is_pointer(path):
            raise invalid("input", f"a reference is an object with `{FROM}`, and with a JSON pointer as `{PATH}`")
        yield task, path
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from references(part)


def check(graph: GraphParams) -> dict[str, set[str]]:
    """Return the dependencies of each task, of a graph that can be run.

    Raises:
        MCPError: an id is there twice, too long or of no task, or tasks wait for each other.
    """
    dependencies: dict[str, set[str]] = {}
    for index, task in enumerate(graph.tasks):
        field = f"tasks.{index}"
        if task.task_id in dependencies:
            raise invalid(f"{field}.task_id", f"{task.task_id} is there twice")
        if len(whole_id(graph, task)) > _LONGEST_ID:
            raise invalid(f"{field}.task_id", f"has more than {_LONGEST_ID} characters with that of `meta` before it")
        dependencies[task.task_id] = task.dependencies()
    for index, task in enumerate(graph.tasks):
        if unknown := sorted(dependencies[task.task_id] - dependencies.keys()):
            raise invalid(f"tasks.{index}.depends_on", f"there is no task {unknown[0][:_LONGEST_ID]}")
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        raise invalid("tasks", f"wait for each other: {' -> '.join(reversed(error.args[1]))}") from None
    return dependencies


def whole_id(graph: GraphParams, task: Task) -> str:
    """Return the id by which an agent knows a task: that of the graph comes first."""
    return f"{graph.meta.task_id}.{task.task_id}"


def filled(value: Any, results: Mapping[str, Any]) -> Any:
    """Return `value` with the results in the place of all references to them.

    Raises:
        Failed: a result has nothing there.
    """
    if isinstance(value, dict) and FROM in value:
        ((task, path),) = references(value)
        return _resolve(results[task], path, task)
    if isinstance(value, dict):
        return {key: filled(part, results) for key, part in value.items()}
    return [filled(part, results) for part in value] if isinstance(value, list) else value


def _is_pointer(path: Any) -> bool:
    return isinstance(path, str) and (not path or path.startswith("/"))


def _resolve(value: Any, path: str, task: str) -> Any:
    for token in path.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[_index(key, value) if isinstance(value, Sequence) else key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Failed("function_error", f"the result of {task} has nothing at {path[:200]}") from None
    return value


def _index(key: str, value: Sequence[Any]) -> int:
    # RFC 6901, section 4: no sign, no leading zero
    if isinstance(value, str) or not key.isascii() or not key.isdigit() or (key[0] == "0" and key != "0"):
        raise ValueError(key)
    return int(key)

"""Graphs of tasks as they are written: what they wait for, and what is none."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from pallas_gateway.own.execution import envelope, graph
from pallas_gateway.own.execution.graph import GraphParams
from pallas_gateway.own.failures import Failed


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"task_id": name, "agent_id": "scout", "function": "echo", **more}


def read(*tasks: dict[str, Any], task_id: str = "dag_001") -> GraphParams:
    return envelope.checked(GraphParams, {"params": {"tasks": list(tasks), "meta": {"task_id": task_id}}})


def test_a_task_waits_for_what_it_names_and_for_what_its_input_is_made_of() -> None:
    made = {"prices": [{"$from": "a", "path": "/ohlcv/0"}], "deep": {"news": {"$from": "b"}}}
    dependencies = graph.check(read(task("a"), task("b"), task("c"), task("d", input=made, depends_on=["c", "a"])))
    assert dependencies == {"a": set(), "b": set(), "c": set(), "d": {"a", "b", "c"}}


@pytest.mark.parametrize(
    ("tasks", "field", "words"),
    [
        ([task("a"), task("a")], "tasks.1.task_id", "a is there twice"),
        ([task("a", depends_on=["b"])], "tasks.0.depends_on", "there is no task b"),
        ([task("a", input={"x": {"$from": "b"}})], "tasks.0.depends_on", "there is no task b"),
        ([task("a", depends_on=["a"])], "tasks", "wait for each other: a -> a"),
        ([task("a", depends_on=["b"]), task("b", input={"x": {"$from": "a"}})], "tasks", "wait for each other"),
        ([task("a", input={"x": {"$from": "a", "more": 1}})], "input", "a reference is an object"),
        ([task("a", input={"x": {"$from": 1}})], "input", "a reference is an object"),
        ([task("a", input={"x": {"$from": "a", "path": "ohlcv"}})], "input", "a reference is an object"),
        ([task("a" * 57)], "tasks.0.task_id", "has more than 64 characters"),
        ([], "tasks", "at least 1 item"),
        ([task(f"t{number}") for number in range(101)], "tasks", "at most 100 items"),
        ([task("a", retries=6)], "tasks.0.retries", "less than or equal to 5"),
        ([task("a", timeout=0)], "tasks.0.timeout", "greater than 0"),
        ([task("a", on_error="ignore")], "tasks.0.on_error", "'fail' or 'skip'"),
        ([task("a", more=1)], "tasks.0.more", "not permitted"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(tasks: list[dict[str, Any]], field: str, words: str) -> None:
    with pytest.raises(MCPError) as refused:
        graph.check(read(*tasks))
    assert (refused.value.code, refused.value.data["field"]) == (-32602, field)
    assert words in refused.value.data["reason"]


RESULTS = {"a": {"ohlcv": [[1.0, 2.0], [3.0]], "a/b": {"m~n": 8}, "": 0}, "b": {}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (None, RESULTS["a"]),
        ("", RESULTS["a"]),
        ("/ohlcv/0/1", 2.0),
        ("/a~1b/m~0n", 8),
        ("/", 0),
    ],
)
def test_a_reference_is_a_json_pointer(path: str | None, value: Any) -> None:
    reference = {"$from": "a"} | ({} if path is None else {"path": path})
    assert graph.filled({"x": [reference, 1], "y": "text"}, RESULTS) == {"x": [value, 1], "y": "text"}


@pytest.mark.parametrize("path", ["/none", *(f"/ohlcv/{key}" for key in ("2", "-1", "00", "x", "²", "", "0/0/x"))])
def test_a_reference_to_nothing_fails(path: str) -> None:
    with pytest.raises(Failed, match="the result of a has nothing at /"):
        graph.filled({"$from": "a", "path": path}, RESULTS)

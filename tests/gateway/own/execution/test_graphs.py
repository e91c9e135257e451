"""Graphs of tasks in one `agent.execute`, before a real MCP server of the SDK."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as t
import pytest

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.tenants import Tenants
from tests.gateway.door import Agent, Door, opened
from tests.gateway.own.execution.test_executions import ENVELOPE, FLEET, before, execute

NUMBER = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}


class Pool(Agent):
    """A data agent whose functions are `double`, `add`, `fail`, `flaky` (its second call succeeds) and `hang`."""

    def __init__(self) -> None:
        super().__init__("news-fetcher")
        self.calls: list[tuple[str, Any, str]] = []

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        loose = ("add", "fail", "flaky", "hang")
        listed = [t.Tool(name=name, input_schema={"type": "object"}) for name in loose]
        return t.ListToolsResult(tools=[t.Tool(name="double", input_schema=NUMBER), *listed])

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        arguments = params.arguments or {}
        before_this = [name for name, _, _ in self.calls]
        self.calls.append((params.name, arguments, ctx.meta["io.pallas-kit/task"]))
        if params.name == "hang":
            await self.hold(ctx)
        failed = params.name == "fail" or (params.name == "flaky" and "flaky" not in before_this)
        value = 2 * arguments["value"] if params.name == "double" else sum(arguments.get("values", []))
        content = [t.TextContent(type="text", text="no luck")] if failed else []
        return t.CallToolResult(content=content, structured_content={"value": value}, is_error=failed)


@pytest.fixture
async def pool() -> Pool:
    return Pool()


def task(name: str, function: str, value: Any = None, **more: Any) -> dict[str, Any]:
    made = {"input": value} if value is not None else {}
    return {"task_id": name, "agent_id": "news_fetcher", "function": function, **made, **more}


def graph(*tasks: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"method": "agent.execute", "params": {"tasks": list(tasks), "meta": {"task_id": "dag", **meta}}}


def value_of(task_id: str) -> dict[str, Any]:
    return {"$from": task_id, "path": "/value"}


SUM = (
    task("a", "double", {"value": 1}),
    task("b", "double", {"value": value_of("a")}),
    task("c", "double", {"value": value_of("a")}),
    task("d", "add", {"values": [value_of("b"), value_of("c")]}),
)


def statuses(tasks: dict[str, Any]) -> dict[str, str]:
    return {name: entry["status"] for name, entry in tasks.items()}


async def failure(door: Door, message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    body = await execute(door, message)
    assert body.keys() == {"error"}
    return body["error"]["code"], body["error"]["data"]


async def test_results_go_from_task_to_task(pool: Pool) -> None:
    async with before(pool) as door:
        answer = await execute(door, graph(*SUM))
        tasks = answer["result"]["tasks"]
        assert {name: entry["result"] for name, entry in tasks.items()} == {
            "a": {"value": 2},
            "b": {"value": 4},
            "c": {"value": 4},
            "d": {"value": 8},
        }
        assert (list(tasks), answer["meta"]["status"]) == (["a", "b", "c", "d"], "success")
        assert all(isinstance(entry["execution_time_ms"], int) for entry in (*tasks.values(), answer["meta"]))
        assert [call[2] for call in pool.calls][::3] == ["dag.a", "dag.d"]
        records = [(record.call.agent, record.call.name) for record in door.noted.ended]
        assert records[0] == ("gateway", "")
        assert sorted(records[1:]) == [("news-fetcher", name) for name in ("add", "double", "double", "double")]


async def test_nothing_runs_of_a_graph_that_cannot_be_run_whole(pool: Pool) -> None:
    async with before(pool) as door:
        good = task("a", "double", {"value": 1})
        for bad, code, expected in (
            (task("b", "triple"), -32601, {"reason": "unknown_function", "task_id": "b"}),
            (task("b", "double", agent_id="hidden"), -32602, {"reason": "unknown_agent", "agent_id": "hidden"}),
            (task("b", "double", {"value": "1"}), -32602, {"field": "tasks.1.input.value"}),
            (task("b", "double", depends_on=["c"]), -32602, {"field": "tasks.1.depends_on"}),
        ):
            refused, data = await failure(door, graph(good, bad))
            assert (refused, data | expected) == (code, data)
        assert pool.calls == []


async def test_a_task_that_fails_ends_the_graph_with_what_became_of_the_others(pool: Pool) -> None:
    async with before(pool) as door:
        tasks = (*SUM[:2], task("bad", "fail", depends_on=["b"]), task("after", "add", depends_on=["bad"]))
        code, data = await failure(door, graph(*tasks))
        assert (code, data["reason"], data["task_id"], data["agent_id"]) == (
            -32000,
            "function_error",
            "bad",
            "news_fetcher",
        )
        expected = {"a": "success", "b": "success", "bad": "error", "after": "cancelled"}
        assert statuses(data["tasks"]) == expected


async def test_a_task_that_may_fail_costs_only_what_waits_for_it(pool: Pool) -> None:
    async with before(pool) as door:
        optional = task("bad", "fail", on_error="skip")
        nothing = task("nothing", "add", {"values": [{"$from": "a", "path": "/none"}]}, on_error="skip")
        answer = await execute(door, graph(optional, task("after", "add", depends_on=["bad"]), SUM[0], nothing))
        tasks = answer["result"]["tasks"]
        assert statuses(tasks) == {"bad": "error", "after": "skipped", "a": "success", "nothing": "error"}
        assert answer["meta"]["status"] == "partial"
        assert tasks["bad"]["error"]["code"] == -32000


@asynccontextmanager
async def beside(pool: Pool, url: str) -> AsyncIterator[Door]:
    """Yield a gateway before the pool and before an agent `hidden` at a URL."""
    tenants = Tenants({"desk": Tenant()})
    async with (
        asyncio.timeout(60),
        pool.app() as app,
        opened({"news-fetcher": app, "hidden": url}, tenants=tenants, fleet=FLEET) as door,
    ):
        yield door


NOBODY = "http://127.0.0.1:1/mcp"
AWAY = task("b", "double", {"value": 1}, agent_id="hidden", on_error="skip", timeout=60)


async def test_an_agent_that_is_away_before_the_graph_begins_fails_its_optional_task_alone(pool: Pool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes a connection, and answers nothing
        hung = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        for reason, url, away in (("unreachable", NOBODY, AWAY), ("timeout", hung, AWAY | {"timeout": 0.2})):
            async with beside(pool, url) as door:
                answer = await execute(door, graph(SUM[0], away, task("c", "add", depends_on=["b"])))
                tasks = answer["result"]["tasks"]
                assert statuses(tasks) == {"a": "success", "b": "error", "c": "skipped"}
                assert answer["meta"]["status"] == "partial"
                data = tasks["b"]["error"]["data"]
                assert (data["reason"], data["agent_id"]) == (reason, "hidden")


async def test_nothing_runs_where_an_agent_is_away_whose_task_may_not_fail(pool: Pool) -> None:
    async with beside(pool, NOBODY) as door:
        code, data = await failure(door, graph(SUM[0], AWAY | {"on_error": "fail"}))
        assert (code, data["reason"], data["task_id"]) == (-32001, "unreachable", "b")
        odd = AWAY | {"task_id": "x", "agent_id": "news_fetcher", "function": "triple"}  # no function of any agent
        code, data = await failure(door, graph(SUM[0], AWAY, odd))
        assert (code, data["reason"], data["task_id"]) == (-32601, "unknown_function", "x")
        assert pool.calls == []


async def test_the_health_names_the_agent_that_was_away_and_not_the_gateway(pool: Pool) -> None:
    async with beside(pool, NOBODY) as door:
        await failure(door, graph(SUM[0], AWAY | {"on_error": "fail"}))
        assert door.reachability.lost == {"hidden": "unreachable"}
        assert "result" in await execute(door, graph(SUM[0]))  # of another agent, and says nothing of this one
        assert door.reachability.lost == {"hidden": "unreachable"}


async def test_the_time_that_a_caller_gives_a_task_says_nothing_of_its_agent(pool: Pool) -> None:
    async with before(pool) as door:
        _, data = await failure(door, graph(task("a", "hang", timeout=0.2)))
        assert (data["reason"], door.reachability.current().status) == ("timeout", "ok")
        # no time at all is over in the check of the graph, which costs an optional task alone
        await execute(door, graph(task("a", "add", timeout=1e-6, on_error="skip"), SUM[0]))
        assert door.reachability.current().status == "ok"


async def test_a_task_is_tried_again_under_its_id(pool: Pool) -> None:
    async with before(pool) as door:
        assert "error" in await execute(door, graph(task("a", "fail", retries=1)))
        assert [name for name, _, _ in pool.calls] == ["fail", "fail"]
        answer = await execute(door, graph(task("a", "flaky", {"values": [1]}, retries=1)))
        assert answer["result"]["tasks"]["a"]["result"] == {"value": 1}
        assert [task_id for _, _, task_id in pool.calls] == ["dag.a"] * 4
        odd = task("a", "double", {"value": {"$from": "b"}}, retries=1)
        code, data = await failure(door, graph(odd, task("b", "add")))
        assert (code, data["field"], data["task_id"]) == (-32602, "input.value", "a")


async def test_each_task_has_its_time_and_the_graph_that_of_its_tenant(pool: Pool) -> None:
    async with before(pool) as door:
        code, data = await failure(door, graph(task("a", "hang", timeout=0.3)))
        assert (code, data["reason"], data["tasks"]["a"]["error"]["code"]) == (-32001, "timeout", -32001)
    async with before(pool, timeout=2) as door:
        code, data = await failure(door, graph(SUM[0], task("b", "hang", depends_on=["a"])))
        assert (code, data["reason"]) == (-32001, "timeout")
        assert "tasks" not in data or data["tasks"]["b"]["status"] == "cancelled"  # it may be over before it began


async def test_who_hangs_up_ends_the_tasks_under_way(pool: Pool) -> None:
    async with before(pool) as door:
        waiting = asyncio.create_task(door.web.post("/mcp", json=graph(task("a", "hang"))))
        await pool.waiting.wait()
        waiting.cancel()
        await pool.cancelled.wait()
        assert [record.outcome for record in await door.noted.until(2)] == ["answered", "hung_up"]


async def test_each_task_counts(pool: Pool) -> None:
    async with before(pool, requests="3/minute") as door:
        code, data = await failure(door, graph(*SUM))
        assert (code, data["reason"]) == (-32013, "rate")
        ended = statuses(data["tasks"])
        assert (ended["a"], ended["d"], "error" in ended.values()) == ("success", "cancelled", True)


async def test_progress_is_told_task_by_task(pool: Pool) -> None:
    async with before(pool) as door:
        message = {**ENVELOPE, **graph(*SUM)}
        message["params"]["_meta"] = {"progressToken": "p"}
        reply = await door.web.post("/mcp", json=message, headers={"accept": "application/json, text/event-stream"})
        assert reply.headers["content-type"] == "text/event-stream"
        events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
        progress = [event["params"] for event in events[:-1]]
        assert [(entry["progressToken"], entry["progress"], entry["total"]) for entry in progress] == [
            ("p", number, 4) for number in (1, 2, 3, 4)
        ]
        assert (progress[0]["message"], progress[-1]["message"]) == ("a: success", "d: success")
        assert (events[-1]["id"], events[-1]["result"]["tasks"]["d"]["result"]) == (7, {"value": 8})
        refused = await door.web.post("/mcp", json={**message, "params": {**message["params"], "tasks": []}})
        assert refused.headers["content-type"] == "application/json"

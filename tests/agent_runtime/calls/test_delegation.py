"""What a call carries from agent to agent, read and written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult
from opentelemetry import baggage
from opentelemetry.propagate import get_global_textmap, set_global_textmap

from pallas_agent_runtime.calls import delegation
from pallas_agent_runtime.calls.delegation import DEPTH, ID, PATH, SECONDS, BadTask, TooFar


@pytest.fixture
def installed() -> Iterator[None]:
    before = get_global_textmap()
    delegation.install()
    yield
    set_global_textmap(before)


def test_a_call_from_outside_begins_a_task() -> None:
    one, other = delegation.arrived(None, "x/a"), delegation.arrived({}, "x/a")
    assert one.id != other.id
    assert (one.depth, one.path, one.route) == (0, ("x/a",), "x/a")
    assert delegation.LONGEST - 1 < one.remaining <= delegation.LONGEST


def test_a_call_of_an_agent_goes_on_with_its_task() -> None:
    task = delegation.arrived({ID: "t-1", DEPTH: "2", PATH: "x/a,x/b", SECONDS: "1.5"}, "x/c")
    task.check(3)
    assert (task.id, task.depth, task.path) == ("t-1", 2, ("x/a", "x/b", "x/c"))
    assert 1 < task.remaining <= 1.5
    assert delegation.arrived({SECONDS: "0"}, "x/c").remaining == 0
    assert delegation.arrived({SECONDS: "999999999"}, "x/c").remaining <= delegation.LONGEST


def test_a_circle_and_too_deep_a_chain_name_the_path() -> None:
    with pytest.raises(TooFar, match=r"in a circle: x/a -> x/b -> x/a$"):
        delegation.arrived({PATH: "x/a,x/b"}, "x/a").check(8)
    with pytest.raises(TooFar, match=r"more than 2 agents deep: x/a -> x/b -> x/c$"):
        delegation.arrived({PATH: "x/a,x/b"}, "x/c").check(2)


@pytest.mark.parametrize(
    ("meta", "named"),
    [
        ({ID: ""}, ID),
        ({ID: 7}, ID),
        ({ID: "a b"}, ID),
        ({ID: "x" * 65}, ID),
        ({SECONDS: "-1"}, SECONDS),
        ({SECONDS: "nan"}, SECONDS),
        ({SECONDS: "1e9"}, SECONDS),
        ({SECONDS: "٣"}, SECONDS),
        ({PATH: ""}, PATH),
        ({PATH: ["x/a"]}, PATH),
        ({PATH: "a,,b"}, PATH),
        ({PATH: "a\u202eb"}, PATH),
        ({PATH: ",".join(f"a{number}" for number in range(100))}, PATH),
        ({PATH: "a", DEPTH: "2"}, DEPTH),
        ({PATH: "a", DEPTH: 1}, DEPTH),
    ],
)
def test_what_is_malformed_is_refused_by_its_key(meta: dict[str, Any], named: str) -> None:
    with pytest.raises(BadTask, match=f"^_meta.{named}: must be "):
        delegation.arrived(meta, "x/z")


def test_the_depth_for_the_metrics_is_never_a_reason_to_fail() -> None:
    metas: list[dict[str, Any] | None] = [None, {}, {PATH: "a,b"}, {PATH: 1}]
    assert [delegation.depth(meta) for meta in metas] == [0, 0, 2, 0]


@pytest.mark.usefixtures("installed")
def test_of_a_callers_trace_the_id_is_read_and_nothing_else() -> None:
    trace = f"00-{1:032x}-{2:016x}-01"
    meta = {"traceparent": trace, "tracestate": "x=word", "baggage": "user=word"}
    found, sent = get_global_textmap().extract(meta), dict[str, str]()
    assert baggage.get_all(found) == {}
    get_global_textmap().inject(sent, found)
    assert sent == {"traceparent": trace}


@pytest.mark.usefixtures("installed")
async def test_every_request_sent_inside_carries_its_own_task() -> None:
    """One connection, made outside of any task, and used by two at once; both eras over HTTP: test_chain.py."""
    seen: dict[str, dict[str, Any]] = {}

    async def call_tool(ctx: Any, params: CallToolRequestParams) -> CallToolResult:
        seen[params.name] = dict(ctx.meta or {})
        return CallToolResult(content=[])

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[])

    async def ask(client: Client, who: str) -> None:
        task = delegation.arrived({ID: who, PATH: "x/a", SECONDS: "60"}, f"x/{who}")
        with delegation.carried(task):
            await asyncio.gather(*(client.call_tool(f"{who}{number}", {}) for number in (1, 2)))

    server: Server[Any] = Server("s", on_call_tool=call_tool, on_list_tools=list_tools)
    async with Client(server, mode="legacy") as client:
        await asyncio.gather(ask(client, "one"), ask(client, "two"))
        await client.call_tool("alone", {})
    assert {name: (meta.get(ID), meta.get(DEPTH), meta.get(PATH)) for name, meta in seen.items()} == {
        "one1": ("one", "2", "x/a,x/one"),
        "one2": ("one", "2", "x/a,x/one"),
        "two1": ("two", "2", "x/a,x/two"),
        "two2": ("two", "2", "x/a,x/two"),
        "alone": (None, None, None),
    }
    assert 59 < float(seen["one1"][SECONDS]) <= 60

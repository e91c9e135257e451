"""Spans of calls through the gateway, before real MCP servers: their names, what they say, and what goes along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as t
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.telemetry import export, spans
from pallas_gateway.tenants import Tenants
from tests.gateway.door import ERAS, Agent, opened
from tests.gateway.own.execution.test_executions import before as before_functions
from tests.gateway.own.execution.test_executions import execute
from tests.gateway.own.execution.test_graphs import Pool, graph, task, value_of
from tests.gateway.own.test_server import FLEET, TENANT, Researcher, ask, ask_agent, before

CLIENT = f"00-{'1f' * 16}-{'2e' * 8}-01"
"""A traceparent of a client."""
ITS_TRACE = "ab" * 16
"""The id that the gateway under test gives to a trace."""


class Recorded:
    """The spans that have ended."""

    def __init__(self) -> None:
        self.kept = InMemorySpanExporter()

    @contextmanager
    def recording(self) -> Iterator[Recorded]:
        tracers = TracerProvider(id_generator=export.Ids(), shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.kept))
        with spans.recorded_by(tracers.get_tracer("test")):
            yield self

    @property
    def ways(self) -> list[str]:
        """Return each span with those above it by name, in the order in which they began."""
        ended = sorted(self.kept.get_finished_spans(), key=lambda span: span.start_time or 0)
        by_id = {span.get_span_context().span_id: span for span in ended}

        def way(span: ReadableSpan) -> list[str]:
            above = by_id.get(span.parent.span_id) if span.parent else None
            return [*(way(above) if above else []), span.name]

        return [" / ".join(way(span)) for span in ended]

    def one(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.kept.get_finished_spans() if span.name == name]
        return span


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with Recorded().recording() as made:
        yield made


def header(span: ReadableSpan) -> str:
    """Return the traceparent by which an agent is part of a span."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


async def test_a_tool_call_has_the_names_and_attributes_of_the_seed(recorded: Recorded) -> None:
    researcher = Researcher()
    async with before(researcher) as door:
        answer = await ask_agent(door, user_id="user-123", session_id="private-handle")
        await ask_agent(door, user_id="user-123", session_id="private-handle", prompt="fail")
    assert recorded.ways == ["mcp.tool.call", "mcp.tool.call / agent.run"] * 2
    call, run = sorted(recorded.kept.get_finished_spans(), key=lambda span: span.start_time or 0)[:2]
    said = dict(call.attributes or {})
    assert said | {spans.SESSION: ""} == {
        "mcp.method.name": "tools/call",
        "mcp.tool.name": "ask_agent",
        "mcp.tenant_id": TENANT,
        "mcp.user_id": "user-123",
        "mcp.session_id": "",
        "gen_ai.agent.name": "percolate-researcher",
    }
    assert len(str(said[spans.SESSION])) == 32
    assert "private-handle" not in str(said)
    assert run.attributes == {"mcp.tool.name": "send_message", "gen_ai.agent.name": "percolate-researcher"}
    # the answer names the trace, and the agent goes on with the span that it is asked in
    assert answer["result"]["structuredContent"]["trace_id"] == ITS_TRACE
    assert researcher.heads[0]["traceparent"] == header(run)
    assert header(run).split("-")[1] == ITS_TRACE
    assert [dict(span.attributes or {}).get("error.type") for span in recorded.kept.get_finished_spans()] == [
        None,
        None,
        "tool_error",
        None,
    ]


async def test_the_trace_of_a_client_goes_on(recorded: Recorded) -> None:
    async with before(Researcher()) as door:
        door.web.headers["traceparent"] = CLIENT
        answer = await ask_agent(door)
        await ask(door, "resources/read", {"uri": "system-agents://list"})
    assert answer["result"]["structuredContent"]["trace_id"] == "1f" * 16
    for name in ("mcp.tool.call", "mcp.resource.read"):
        parent = recorded.one(name).parent
        assert parent is not None
        assert (f"{parent.trace_id:x}", f"{parent.span_id:x}") == ("1f" * 16, "2e" * 8)


class Memory(Agent):
    """A service that finds nothing."""

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        return t.CallToolResult(content=[], structured_content={"results": []})


async def test_a_search_of_a_service_is_a_span_of_its_own(recorded: Recorded) -> None:
    memory = Memory("memory")
    tenants = Tenants({TENANT: Tenant()})
    tools = {"search_knowledge_base": "memory"}
    async with (
        memory.app() as app,
        opened({"memory": app}, tenants=tenants, fleet=FLEET, tools=tools) as door,
    ):
        arguments = {"query": "what nobody shall read", "tenant_id": TENANT}
        await ask(door, "tools/call", {"name": "search_knowledge_base", "arguments": arguments})
    assert recorded.ways == ["mcp.tool.call", "mcp.tool.call / search.vector"]
    assert memory.heads[0]["traceparent"] == header(recorded.one("search.vector"))
    assert "nobody" not in str([span.to_json() for span in recorded.kept.get_finished_spans()])


@pytest.mark.parametrize("era", ERAS)
async def test_what_passes_through_is_part_of_the_trace_too(recorded: Recorded, era: str) -> None:
    scout = Agent()
    async with scout.app() as app, opened({"scout": app}) as door, door.client("scout", era) as client:
        await client.call_tool("echo", {"text": "hello"})
    span = recorded.one("mcp.tool.call")
    assert span.attributes == {
        "mcp.method.name": "tools/call",
        "mcp.tool.name": "echo",
        "gen_ai.agent.name": "scout",
    }
    assert header(span) in [head.get("traceparent") for head in scout.heads]


async def test_an_agent_that_is_not_there_is_the_word_for_it(recorded: Recorded) -> None:
    async with opened({"scout": "http://127.0.0.1:1/mcp"}) as door:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
        await door.web.post(door.url(), json=message)
    span = recorded.one("mcp.tool.call")
    assert dict(span.attributes or {})["error.type"] == "unreachable"
    assert not span.status.is_ok


async def test_a_graph_is_one_trace(recorded: Recorded) -> None:
    async with before_functions(Pool()) as door:
        await execute(door, graph(task("a", "double", {"value": 1}), task("b", "double", {"value": value_of("a")})))
    step = "agent.execute / agent.execute"
    # the first step is the check of the whole graph
    assert recorded.ways == ["agent.execute", step, step, f"{step} / agent.run", step, f"{step} / agent.run"]
    tasks = [dict(span.attributes or {}).get(spans.TASK) for span in recorded.kept.get_finished_spans()]
    assert [name for name in tasks if name] == ["dag.a", "dag.b"]


async def test_without_a_collector_the_clients_trace_passes_as_it_came() -> None:
    scout = Agent()
    async with scout.app() as app, opened({"scout": app}) as door:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
        await door.web.post(door.url(), json=message, headers={"traceparent": CLIENT, "tracestate": "a=b"})
    assert (scout.heads[0]["traceparent"], scout.heads[0]["tracestate"]) == (CLIENT, "a=b")

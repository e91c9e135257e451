"""Two agents and a client send their spans to one collector: which spans these are, and what is not in them."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from pallas_contract import names

pytestmark = pytest.mark.slow

CANARY = "canary-7f3a"
"""Stands in everything that is said; ids of tasks and calls do not have it."""

CLIENT = """
import asyncio, sys
from mcp import Client
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

tracers = TracerProvider()
tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(tracers)

async def main(url, era, message, task):
    async with Client(url, mode=era) as client:
        await client.call_tool("harper", {"message": message}, meta={"io.pallas-kit/task": task})

asyncio.run(main(*sys.argv[1:]))
tracers.shutdown()
"""


@pytest.fixture(scope="module")
def model(toolkit: Any) -> Iterator[Any]:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        text = toolkit.said(last)
        if text.startswith("stranger "):
            return toolkit.tool_call("stranger__look")
        if last["role"] == "tool" or not text.startswith("delegate "):
            return {"content": f"the model says {CANARY}: {text}"}
        return toolkit.tool_call("research__research", message=text.removeprefix("delegate "))

    yield from toolkit.serve_model(toolkit.Model(answer, models=["m"]))


@pytest.fixture(scope="module")
def project(model: Any, stranger: Any, toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    card = {"type": "agent", "instruction": f"You know {CANARY}."}
    ports = [toolkit.free_port() for _ in range(3)]
    return toolkit.write_files(
        tmp_path_factory.mktemp("traced"),
        {
            "agents.yaml": {
                "name": "traced",
                "version": "3.2.1",
                "namespace": "x",
                "registry_port": ports[0],
                "agents": {
                    "harper": {"card": "harper.yaml", "port": ports[1], "depends_on": ["research"]},
                    "research": {"card": "research.yaml", "port": ports[2]},
                },
            },
            "harper.yaml": {**card, "name": "harper", "servers": ["research", "stranger"]},
            "research.yaml": {**card, "name": "research"},
            "fastagent.config.yaml": {
                "default_model": "openai.m",
                "llm_retries": 0,
                "mcp": {"servers": {"stranger": {"url": stranger.url}}},
            },
            ".env": f"OPENAI_API_KEY=sk-{CANARY}\nOPENAI_BASE_URL={model.url}\n",
        },
    )


@pytest.fixture(scope="module")
def fleet(project: Any, toolkit: Any, collector: Any) -> Iterator[Any]:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
    with toolkit.running(project, "research", "harper", **env) as started:
        yield started


def as_client(fleet: Any, era: str, message: str, task: str) -> None:
    command = [sys.executable, "-c", CLIENT, fleet.url("harper"), era, message, task]
    env = {**fleet.env, "OTEL_SERVICE_NAME": "client"}
    done = subprocess.run(command, check=False, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


SETTING_UP = {"initialize", "server/discover", "tools/list", "prompts/list", "resources/list", "ping"}


def ways(collector: Any, task: str) -> list[str]:
    """Every span of the task's trace with those above it, as `service: name`, without what sets a connection up."""
    spans = {span["spanId"]: span for span in collector.trace(task)}

    def way(span: dict[str, Any]) -> list[str]:
        above = spans.get(span.get("parentSpanId", ""))
        return [*(way(above) if above else []), f"{span['service']}: {span['name']}"]

    wanted = [span for span in spans.values() if span["name"] not in SETTING_UP | {"_OTHER"}]
    return sorted(" / ".join(way(span)) for span in wanted)


@pytest.fixture(scope="module")
def traced(fleet: Any, collector: Any, toolkit: Any) -> Callable[[str], list[str]]:
    """The spans of one delegation of a client of an era, as `ways`: asked for once, by the first test that needs it."""

    @cache
    def delegate(era: str) -> list[str]:
        as_client(fleet, era, f"delegate {CANARY}", f"one-{era}")
        toolkit.until(lambda: True if len(ways(collector, f"one-{era}")) >= SPANS else None)
        return ways(collector, f"one-{era}")

    return delegate


SPANS = 9
"""Of one delegation, as the first test lists them."""


def test_client_agent_and_sub_agent_are_one_trace(traced: Callable[[str], list[str]], era: str) -> None:
    asked = "client: MCP send tools/call harper / harper: tools/call harper / harper: invoke_agent harper"
    delegated = f"{asked} / harper: tools/call research / research: tools/call research"
    tree = [
        "client: MCP send tools/call harper",
        "client: MCP send tools/call harper / harper: tools/call harper",
        asked,
        f"{asked} / harper: chat m",
        f"{asked} / harper: chat m",
        f"{asked} / harper: tools/call research",
        delegated,
        f"{delegated} / research: invoke_agent research",
        f"{delegated} / research: invoke_agent research / research: chat m",
    ]
    assert len(tree) == SPANS
    assert traced(era) == tree


def test_spans_say_where_a_task_is_and_log_lines_which_trace(
    fleet: Any, era: str, collector: Any, traced: Callable[[str], list[str]]
) -> None:
    traced(era)
    spans = {span["service"]: span for span in collector.trace(f"one-{era}") if "pallas.task.id" in span["attributes"]}
    said = {
        service: [span["attributes"][f"pallas.task.{key}"] for key in ("depth", "path")]
        for service, span in spans.items()
    }
    values = lambda *names: {"values": [{"stringValue": name} for name in names]}  # noqa: E731
    assert said == {"harper": ["0", values("x/harper")], "research": ["1", values("x/harper", "x/research")]}
    for name, span in spans.items():
        lines = [json.loads(line) for line in fleet.log(name).read_text().splitlines()]
        (line,) = [line for line in lines if line.get("task") == f"one-{era}"]
        assert bytes.fromhex(line["trace_id"]) == base64.b64decode(span["traceId"])
        assert bytes.fromhex(line["span_id"]) == base64.b64decode(span["spanId"])


def test_a_model_request_says_model_and_tokens(collector: Any, traced: Callable[[str], list[str]]) -> None:
    traced("legacy")
    (said, *_) = [span["attributes"] for span in collector.spans() if span["name"] == "chat m"]
    assert (said["gen_ai.operation.name"], said["gen_ai.request.model"]) == ("chat", "m")


async def test_a_gateway_may_send_the_trace_in_http_headers(fleet: Any, era: str, collector: Any, toolkit: Any) -> None:
    trace_id = f"{1 if era == 'legacy' else 2:032x}"
    headers = {"traceparent": f"00-{trace_id}-00000000000000ab-01"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(fleet.url("research"), http_client=http), mode=era) as client,
    ):
        await client.call_tool("research", {"message": "hello"})
    encoded = base64.b64encode(bytes.fromhex(trace_id)).decode()
    names = lambda: {span["name"] for span in collector.spans() if span["traceId"] == encoded}  # noqa: E731
    toolkit.until(lambda: True if {"tools/call research", "invoke_agent research", "chat m"} <= names() else None)


async def raw(url: str, method: str, params: dict[str, Any], number: Any = 1) -> None:
    """A request as nobody's client would send it."""
    about = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": CANARY, "version": CANARY},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": str(params.get("name", "")),
    }
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": about}}
    async with httpx2.AsyncClient(timeout=30) as http:
        await http.post(url, json=body, headers=headers)


async def test_nothing_that_is_said_leaves_with_the_spans(
    fleet: Any, era: str, collector: Any, model: Any, toolkit: Any
) -> None:
    """Prompts, arguments, answers, handles, names that callers make up, and the texts of errors."""
    image = {"data": CANARY, "mime_type": CANARY}
    async with Client(fleet.url("harper"), mode=era) as client:
        for arguments in (
            {"message": f"hello {CANARY}", "session_id": CANARY},
            {"message": f"delegate delegate {CANARY}"},
            {"message": CANARY, CANARY: CANARY},
            {"message": CANARY, "images": [image]},
        ):
            await client.call_tool("harper", arguments)
        for broken in (client.call_tool(CANARY, {}), client.get_prompt(CANARY)):
            with pytest.raises(MCPError):
                await broken
        await client.get_prompt("harper_history", {"session_id": CANARY})
        model.broken = True
        failed = await client.call_tool("harper", {"message": CANARY})
        model.broken = False
        assert failed.is_error
    url = fleet.url("harper")
    await raw(url, "tools/call", {"name": "harper", "arguments": {"message": "x"}}, number=CANARY * 9)
    await raw(url, "tools/call", {"name": CANARY, "arguments": {}})
    await raw(url, f"{CANARY}/{CANARY}", {})
    as_client(fleet, era, "hello", f"last-{era}")
    toolkit.until(lambda: True if ways(collector, f"last-{era}") else None)
    assert [body for body in collector.bodies if CANARY.encode() in body or b"stand-in" in body] == []
    assert {span["name"] for span in collector.spans()} >= {"tools/call _OTHER", "prompts/get _OTHER"}


async def test_of_a_callers_trace_only_its_id_goes_on(
    fleet: Any, era: str, collector: Any, model: Any, stranger: Any, toolkit: Any
) -> None:
    """`tracestate` and `baggage` hold what others wrote, for whom nobody knows: they end here, wherever they stand."""
    stranger.seen.clear()
    model.headers.clear()
    ids = [f"{1 if era == 'legacy' else 2:016x}{place:016x}" for place in (1, 2)]
    said = [
        {"traceparent": f"00-{id_}-00000000000000ab-01", "tracestate": f"x={CANARY}", "baggage": f"user={CANARY}"}
        for id_ in ids
    ]
    for headers, meta in ((said[0], {}), ({}, said[1])):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(fleet.url("harper"), http_client=http), mode=era) as client,
        ):
            for message in ("stranger hello", "delegate hello"):
                await client.call_tool("harper", {"message": message}, meta=meta)

    def recorded(place: int) -> bool | None:
        trace = base64.b64encode(bytes.fromhex(ids[place])).decode()
        names = [span["name"] for span in collector.spans() if span["traceId"] == trace]
        return True if names.count("tools/call research") == 2 else None

    for place in (0, 1):
        await asyncio.to_thread(toolkit.until, lambda place=place: recorded(place))
    passed_on = [seen["meta"]["traceparent"].split("-")[1] for seen in stranger.seen if "traceparent" in seen["meta"]]
    assert set(passed_on) == set(ids)
    assert CANARY not in str(stranger.seen)
    told = [value for one in model.headers for key, value in one.items() if key.lower() != "authorization"]
    assert told
    assert not any(CANARY in value for value in told)
    assert [body for body in collector.bodies if CANARY.encode() in body] == []
    assert not any(CANARY in fleet.log(name).read_text() for name in ("harper", "research"))


def test_probes_begin_no_trace(collector: Any, traced: Callable[[str], list[str]]) -> None:
    """The agents are probed by each other all the while."""
    traced("legacy")
    beginnings = {span["name"] for span in collector.spans() if "parentSpanId" not in span}
    assert beginnings
    assert not beginnings & {"tools/call get_health", "tools/list", *SETTING_UP}


# --- one agent, other settings ---


@contextmanager
def alone(toolkit: Any, project: Path, folder: Path, **env: str) -> Iterator[Any]:
    """`research` as a process with a port of its own."""
    data = yaml.safe_load((project / "agents.yaml").read_text())
    data["agents"] = {"research": {**data["agents"]["research"], "port": toolkit.free_port()}}
    shutil.copytree(project, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.log", "__pycache__"))
    toolkit.write_files(folder, {"agents.yaml": data})
    with toolkit.running(folder, "research", **{"OTEL_BSP_SCHEDULE_DELAY": "100", **env}) as started:
        yield started


async def ask(started: Any, message: str) -> str:
    async with Client(started.url("research")) as client:
        result = await client.call_tool("research", {"message": message})
    return str(result.content[0].text)


def events(started: Any) -> list[str]:
    return [json.loads(line)["event"] for line in started.log("research").read_text().splitlines()]


async def test_what_is_said_goes_along_where_that_was_asked_for_and_a_collector_may_come_and_go(
    project: Path, collecting: Any, toolkit: Any, tmp_path: Path
) -> None:
    with collecting() as collector:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, names.ENV_TRACE_CONTENT: "true"}
        with alone(toolkit, project, tmp_path, **env) as started:
            await ask(started, f"hello {CANARY}")
            said = lambda: [span["attributes"] for span in collector.spans() if span["kind"] == "SPAN_KIND_SERVER"]  # noqa: E731
            await asyncio.to_thread(toolkit.until, lambda: said() or None)
            assert CANARY in said()[0]["gen_ai.tool.call.arguments"]
            assert CANARY in said()[0]["gen_ai.tool.call.result"]
            assert any(CANARY in str(span["attributes"]) for span in collector.spans() if span["name"] == "chat m")
            assert not [body for body in collector.bodies if b"sk-" in body]
            collector.broken = True
            for _ in range(3):
                assert CANARY in await ask(started, "hello")
                await asyncio.to_thread(toolkit.until, lambda: "telemetry_lost" in events(started) or None)
            collector.broken = False

            async def until_back() -> None:
                while "telemetry_back" not in events(started):
                    await ask(started, "hello")

            await asyncio.wait_for(until_back(), 60)
            assert started.end("research") == 0
            assert events(started).count("telemetry_lost") == 1


async def test_a_collector_that_never_answers_slows_nothing_down(project: Path, toolkit: Any, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "100"}
        with alone(toolkit, project, tmp_path, **env) as started:
            began = time.monotonic()
            for _ in range(20):
                assert CANARY in await ask(started, "hello")
            assert time.monotonic() - began < 100  # one timeout of the exporter
            silent.settimeout(30)
            silent.accept()[0].close()  # it was asked
            assert started.end("research", seconds=10) == 0  # not the half minute of the SDK

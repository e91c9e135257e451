"""The Prometheus metrics of one agent, on a registry of their own; every label value comes from a known set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import ValidationError

from pallas_agent_runtime.calls import delegation
from pallas_agent_runtime.health.downstream import Downstream
from pallas_agent_runtime.health.preflight import Preflight
from pallas_contract import __version__
from pallas_contract.documents.health import GAUGE, TOOL, Health
from pallas_service.http.disconnect import HungUp

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Those of the OpenTelemetry convention for `mcp.server.operation.duration`."""
DEPTHS = (0, 1, 2, 3, 4, 6, 8, 16)
OTHER = "_OTHER"
METHODS = frozenset(
    {"initialize", "ping", "prompts/get", "prompts/list", "server/discover", "tools/call", "tools/list"}
    | {"notifications/cancelled", "notifications/initialized"}
)


class Metrics:
    """The metrics behind `/metrics`, and a middleware of the MCP server, which times every message."""

    def __init__(self, agent: str, tools: Iterable[str], clock: Callable[[], float] = time.perf_counter) -> None:
        self._agent = agent
        self._tools = frozenset(tools)
        self._clock = clock
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "mcp_server_operation_duration_seconds",
            "Duration of MCP messages as the server saw them.",
            ["mcp_method_name", "gen_ai_tool_name", "error_type"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._depth = Histogram(
            "pallas_delegation_depth",
            "Agents that passed a question on before it came here; 0 for one from outside.",
            buckets=DEPTHS,
            registry=self.registry,
        )
        self._in_flight = Gauge("pallas_calls_in_flight", "Tool calls being answered now.", registry=self.registry)
        build = Gauge("pallas_build_info", "Version of the runtime.", ["version"], registry=self.registry)
        build.labels(__version__).set(1)
        self._calls = 0
        self.idle = asyncio.Event()
        """Set while no tool call is being answered."""
        self.idle.set()

    def watch(self, current: Callable[[], Health], downstream: Downstream, preflight: Preflight) -> None:
        """Read these at every scrape."""
        self.registry.register(_State(self._agent, current, downstream, preflight))

    def watch_sessions(self, opened: Callable[[], int], ended: Callable[[], int], refused: Callable[[], int]) -> None:
        """Read these at every scrape: sessions that are open, were ended to make room, and were refused."""
        self.registry.register(_Sessions(opened, ended, refused))

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        started = self._clock()
        call = ctx.method == "tools/call"
        error = "cancelled"  # what is left when neither a result nor an exception of the handler is seen
        self._count(call, 1)
        if call and self._tool(ctx) not in (TOOL, OTHER):
            self._depth.observe(delegation.depth(ctx.meta))
        try:
            result = await call_next(ctx)
            error = "tool_error" if isinstance(result, dict) and result.get("isError") else ""
        except HungUp:
            raise  # what the SDK says of the other era: it cancels the call
        except MCPError as failure:
            error = str(failure.code)
            raise
        except ValidationError:
            error = "-32602"
            raise
        except Exception:
            error = OTHER
            raise
        finally:
            self._count(call, -1)
            method = ctx.method if ctx.method in METHODS else OTHER
            self._seconds.labels(method, self._tool(ctx) if call else "", error).observe(self._clock() - started)
        return result

    def repeated_health(self, seconds: float) -> None:
        """Count a `get_health` that was answered in front of the MCP server (web.repeated_health)."""
        self._seconds.labels("tools/call", TOOL, "").observe(seconds)

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def _count(self, call: bool, change: int) -> None:
        if call:
            self._calls += change
            self._in_flight.set(self._calls)
            (self.idle.clear if self._calls else self.idle.set)()

    def _tool(self, ctx: ServerRequestContext[Any, Any]) -> str:
        name = (ctx.params or {}).get("name")
        return name if isinstance(name, str) and name in self._tools else OTHER


class _Sessions(Collector):
    """Sessions of the handshake era."""

    def __init__(self, opened: Callable[[], int], ended: Callable[[], int], refused: Callable[[], int]) -> None:
        self._opened = opened
        self._ended = ended
        self._refused = refused

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("pallas_sessions", "Open sessions of the handshake era.", value=self._opened())
        ended = "Idle sessions that were ended to make room for others."
        yield CounterMetricFamily("pallas_sessions_ended", ended, value=self._ended())
        refused = "Sessions that were refused, because all others had calls under way."
        yield CounterMetricFamily("pallas_sessions_refused", refused, value=self._refused())


class _State(Collector):
    """Health, downstream servers and providers as they are when asked."""

    def __init__(self, agent: str, current: Callable[[], Health], downstream: Downstream, preflight: Preflight) -> None:
        self._agent = agent
        self._current = current
        self._downstream = downstream
        self._preflight = preflight

    def collect(self) -> Iterable[Metric]:
        health = GaugeMetricFamily("pallas_agent_health", "1 ok, 0.5 degraded, 0 error.", labels=["agent"])
        health.add_metric([self._agent], GAUGE[self._current().status])
        up = GaugeMetricFamily("pallas_downstream_up", "Whether a server it uses answers.", labels=["server"])
        for name, probe in self._downstream.last_probes.items():
            up.add_metric([name], float(probe.result.reachable))
        llm = GaugeMetricFamily("pallas_llm_preflight_ok", "Whether a provider can be used.", labels=["provider"])
        for name, outcome in self._preflight.outcomes.items():
            llm.add_metric([name], float(outcome.ok))
        return [health, up, llm]

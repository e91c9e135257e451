"""The Prometheus metrics of the gateway; every label value comes from a known set."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

from pallas_contract import __version__
from pallas_gateway.data_plane.record import END, Call, Record

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Those of the OpenTelemetry convention for `mcp.server.operation.duration`."""
OTHER = "_OTHER"
_TOOL = ("mcp_tool_name", "mcp_tenant_id")
_NAMES = frozenset({"agent", "mcp_tenant_id"})
"""Labels that are for operators."""
METHODS = frozenset(
    {"initialize", "ping", "server/discover", "tools/call", "tools/list", "prompts/get", "prompts/list"}
    | {"resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe"}
    | {"completion/complete", "logging/setLevel", "notifications/cancelled", "notifications/initialized"}
    | {"subscriptions/listen", "agent.execute", ""}
)


class Metrics:
    """A `Watcher` behind `/metrics`; `agents` are those that there are routes to."""

    def __init__(self, agents: Collection[str]) -> None:
        self._agents = frozenset(agents)
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "pallas_gateway_request_duration_seconds",
            "Duration of requests to agents as the gateway saw them.",
            ["agent", "mcp_method_name", "outcome"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        in_flight = Gauge("pallas_gateway_requests_in_flight", "Requests under way.", registry=self.registry)
        in_flight.set_function(lambda: float(self._open))
        self._milliseconds = Histogram(
            "mcp_tool_duration_ms",
            "Duration of calls of the gateway's own tools in milliseconds (seed 002, Metrics).",
            _TOOL,
            buckets=[1000 * bucket for bucket in BUCKETS],
            registry=self.registry,
        )
        self._errors = Counter(
            "mcp_tool_errors",
            "Calls of the gateway's own tools that ended with an error.",
            _TOOL,
            registry=self.registry,
        )
        build = Gauge("pallas_build_info", "Version of the gateway.", ["version"], registry=self.registry)
        build.labels(__version__).set(1)
        self._known: dict[tuple[str, str, str], Histogram] = {}
        """Those of label values that were seen: the library makes text of all of them to find one."""
        self._open = 0
        self._listening: set[int] = set()
        """Numbers of the calls that began like any other, and are only listened to."""
        self.idle = asyncio.Event()
        """Set while no request is under way but those that are only listened to."""
        self.idle.set()

    def begin(self, call: Call) -> None:
        if not call.listens:
            self._count(1)

    def listens(self, call: Call) -> None:
        """Note that a request which began is only listened to from now on: nobody works for it or waits for its end."""
        if not call.listens:
            self._listening.add(call.number)
            self._count(-1)

    def end(self, record: Record) -> None:
        call = record.call
        if call.number in self._listening:
            self._listening.remove(call.number)
        elif not call.listens:
            self._count(-1)
            agent = call.agent if call.agent in self._agents else OTHER
            labels = (agent, _method(call), record.outcome)
            if (histogram := self._known.get(labels)) is None:
                histogram = self._known[labels] = self._seconds.labels(*labels)
            histogram.observe(record.seconds)
        if call.own and call.method == "tools/call" and call.name:
            self._milliseconds.labels(call.name, call.tenant).observe(1000 * record.seconds)
            if record.outcome not in ("answered", "hung_up"):
                self._errors.labels(call.name, call.tenant).inc()

    def render(self, *, names: bool = True) -> bytes:
        """Return the exposition in Prometheus' text format; without `names` of agents and tenants as sums over them."""
        return generate_latest(self.registry if names else _Nameless(self.registry))

    def _count(self, change: int) -> None:
        self._open += change
        (self.idle.clear if self._open else self.idle.set)()


class _Nameless:
    """The metrics of a registry, those added up that differ in a name alone."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
            for sample in metric.samples:
                labels = tuple((key, value) for key, value in sample.labels.items() if key not in _NAMES)
                if not sample.name.endswith("_created"):
                    sums[sample.name, labels] = sums.get((sample.name, labels), 0) + sample.value
            summed = Metric(metric.name, metric.documentation, metric.type)
            for (name, labels), value in sums.items():
                summed.add_sample(name, dict(labels), value)
            yield summed


def _method(call: Call) -> str:
    if call.http_method == "DELETE":
        return END
    return call.method if call.method in METHODS else OTHER

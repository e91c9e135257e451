"""The pods of a rendered chart among strangers, and what agents.yaml promises about each connection between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import product
from typing import Any, NamedTuple

from pallas_contract import names
from pallas_gen.plan import Plan, Workload

from .network_policies import OUTSIDE, Endpoint, Policies, pod

SPACE = "space"
"""Where the chart is installed."""
TEST = "pallas-test"
"""The pod of `helm test`."""
METADATA = {
    "metadata": "169.254.169.254",
    "task-metadata": "169.254.170.2",
    "metadata-v6": "fe80::a9fe:a9fe",
    "metadata-ec2": "fd00:ec2::254",
    "metadata-gce": "fd20:ce::254",
    "metadata-alibaba": "100.100.100.200",
    "wireserver-azure": "168.63.129.16",
}
"""Where clouds hand out a machine's credentials."""
WORLD = {"internet": "203.0.113.9", "internet-v6": "2001:db8::9", "partner": "10.20.0.5", "neighbour": "10.21.0.5"}
STRANGERS = {"stranger": SPACE, "elsewhere": "other", "prometheus": "monitoring", "dns": "kube-system"}
"""Pods that are none of the chart's, and their namespaces."""
PORTS = [(8080, "TCP"), (8080, "UDP"), (53, "UDP"), (53, "TCP"), (443, "TCP"), (4318, "TCP"), (8081, "TCP")]


class Connection(NamedTuple):
    source: Endpoint
    target: Endpoint
    port: int
    protocol: str

    def __str__(self) -> str:
        return f"{self.source.name} -> {self.target.name} {self.port}/{self.protocol}"


class Network:
    """Every pod of a chart, those of others, and addresses of the world."""

    def __init__(self, manifests: Any) -> None:
        self.objects = list(manifests.of("NetworkPolicy").values())
        self.policies = Policies(self.objects)
        numbers = iter(range(10, 250))
        self.members = {
            name: pod(name, SPACE, item["metadata"]["labels"], item["spec"], address=f"10.244.0.{next(numbers)}")
            for name, item in sorted(manifests.pods.items())
        }
        self.strangers = {
            name: pod(name, namespace, {"app": "x"}, {}, address=f"10.244.1.{next(numbers)}")
            for name, namespace in STRANGERS.items()
        }
        self.outside = {name: Endpoint(name, ip_address(text)) for name, text in (METADATA | WORLD).items()}

    @property
    def everybody(self) -> dict[str, Endpoint]:
        return self.members | self.strangers | self.outside

    def connections(self) -> Iterator[Connection]:
        """Yield each from anybody to anybody else at each port, where at least one end is the chart's."""
        everybody = self.everybody.values()
        for source, target, (port, protocol) in product(everybody, everybody, PORTS):
            if source != target and (source.name in self.members or target.name in self.members):
                yield Connection(source, target, port, protocol)

    def edges(self, port: int = 8080) -> set[tuple[str, str]]:
        """Return (caller, called) of each TCP connection to one port that the policies let through."""
        calls = [item for item in self.connections() if (item.port, item.protocol) == (port, "TCP")]
        return {(item.source.name, item.target.name) for item in calls if self.policies.let_through(*item)}


@dataclass(frozen=True)
class Promise:
    """What agents.yaml and the values say about a connection, in words of the plan: no policy is read here."""

    plan: Plan
    published_to: str = "nobody"
    """`nobody`; `namespaces`, all others, as with an Ingress; `world`, as with a Service of type LoadBalancer."""
    monitored: bool = False

    def holds_for(self, item: Connection) -> bool:
        """Return whether the connection is promised to get through."""
        return self._may_leave(item) and self._may_enter(item)

    def declared(self) -> set[tuple[str, str]]:
        """Return (caller, called) of the graph, of the registry's probes and of the chart's test."""
        agents = {item.host for item in self.plan.workloads if item.kind == "agent"}
        probes = {("registry", host) for host in self.plan.workload("registry").calls}
        doors = {item.host for item in self.plan.workloads if item.kind in ("registry", "gateway")}
        return {*self.plan.edges, *probes} | {(TEST, host) for host in agents | doors}

    def _member(self, endpoint: Endpoint) -> Workload | None:
        return next((item for item in self.plan.workloads if item.host == endpoint.name), None)

    def _is_call(self, item: Connection) -> bool:
        edge = (item.source.name, item.target.name)
        return edge in self.declared() and (item.port, item.protocol) == (names.CONTAINER_PORT, "TCP")

    def _may_leave(self, item: Connection) -> bool:
        member = self._member(item.source)
        if member is None and item.source.name != TEST:
            return True
        if self._is_call(item) or (item.target.namespace == "kube-system" and item.port == 53):
            return True
        if member is None or item.target.name in METADATA:
            return False
        reach = [ip_network(block) for block in member.reach]
        world = member.egress and (not reach or any(item.target.address in block for block in reach))
        collector = member.collector and (member.collector.port, "TCP") == (item.port, item.protocol)
        return bool(world or collector)

    def _may_enter(self, item: Connection) -> bool:
        member = self._member(item.target)
        if item.target.name == TEST:
            return False
        if member is None or self._is_call(item):
            return True
        if (item.port, item.protocol) != (names.CONTAINER_PORT, "TCP"):
            return False
        if self.monitored and member.kind != "service" and item.source.namespace == "monitoring":
            return True
        return member.published is not None and self._is_published_to(item.source)

    def _is_published_to(self, source: Endpoint) -> bool:
        other_namespace = source.namespace not in (SPACE, OUTSIDE)
        return self.published_to == "world" or (self.published_to == "namespaces" and other_namespace)

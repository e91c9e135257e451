"""The policies, evaluated for every pair of pods: what the graph declares gets through, and nothing else."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from .conftest import GRAPH

pytestmark = pytest.mark.helm

Labels = dict[str, str]
HERE = "space"


def selects(selector: dict[str, Any], labels: Labels) -> bool:
    """A label selector (matchLabels, and matchExpressions with In and NotIn)."""
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    for rule in selector.get("matchExpressions", []):
        assert rule["operator"] in ("In", "NotIn")
        if (labels.get(rule["key"]) in rule["values"]) is (rule["operator"] == "NotIn"):
            return False
    return True


def admits(peer: dict[str, Any], namespace: str, labels: Labels) -> bool:
    """Whether a policy's peer covers a pod. An address block is taken to cover every pod, which is the worst case."""
    if "ipBlock" in peer:
        return True
    if "namespaceSelector" not in peer and namespace != HERE:
        return False
    spaces = selects(peer.get("namespaceSelector", {}), {"kubernetes.io/metadata.name": namespace})
    return spaces and selects(peer.get("podSelector", {}), labels)


class Net:
    """The pods of a rendered chart and the policies over them."""

    def __init__(self, manifests) -> None:
        self.policies = [item["spec"] for item in manifests.of("NetworkPolicy").values()]
        self.pods = {name: (HERE, pod["metadata"]["labels"]) for name, pod in manifests.pods.items()}
        self.pods["stranger"] = (HERE, {"app": "x"})
        self.pods["elsewhere"] = ("other", {"app": "x"})
        self.pods["prometheus"] = ("monitoring", {"app": "x"})

    def _side(self, way: str, own: str, other: str, port: int) -> bool:
        namespace, labels = self.pods[own]
        key, side = ("Egress", "to") if way == "egress" else ("Ingress", "from")
        concerned = [
            item
            for item in self.policies
            if key in item["policyTypes"] and namespace == HERE and selects(item["podSelector"], labels)
        ]
        rules = [rule for item in concerned for rule in item.get(way, [])]
        opened = [rule for rule in rules if not rule.get("ports") or any(p["port"] == port for p in rule["ports"])]
        return not concerned or any(
            side not in rule or any(admits(peer, *self.pods[other]) for peer in rule[side]) for rule in opened
        )

    def reaches(self, caller: str, called: str, port: int = 8080) -> bool:
        return self._side("egress", caller, called, port) and self._side("ingress", called, caller, port)

    def edges(self) -> set[tuple[str, str]]:
        return {(a, b) for a, b in product(self.pods, repeat=2) if a != b and self.reaches(a, b)}


FLEET = {"top", "left-one", "right", "tools", "model", "registry"}


def declared(plan) -> set[tuple[str, str]]:
    agents = {item.host for item in plan.workloads if item.kind == "agent"}
    probes = {("registry", host) for host in agents} | {("pallas-test", host) for host in agents | {"registry"}}
    return set(plan.edges) | probes


def among(edges: set[tuple[str, str]], members: set[str]) -> set[tuple[str, str]]:
    return {(a, b) for a, b in edges if a in members and b in members}


def test_every_pair_is_as_the_graph_says(graph, plain) -> None:
    edges = Net(plain).edges()
    assert among(edges, FLEET | {"pallas-test"}) == declared(graph.plan)
    assert not {(a, b) for a, b in edges if b in FLEET and a not in FLEET | {"pallas-test"}}


def test_only_egress_reaches_the_world(plain) -> None:
    net = Net(plain)
    assert {name for name in FLEET if net.reaches(name, "elsewhere", 443)} == {"right"}
    blocks = [
        peer["ipBlock"]
        for rule in plain.one("NetworkPolicy", "right")["spec"]["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
    ]
    assert all(any(part.startswith(("169.254.", "f")) for part in block["except"]) for block in blocks)


def test_every_pod_resolves_names(plain) -> None:
    for name, policy in plain.of("NetworkPolicy").items():
        ports = [port["port"] for rule in policy["spec"].get("egress", []) for port in rule.get("ports", [])]
        assert name == "pallas-deny" or 53 in ports


def test_what_is_published_is_open_to_others_but_not_to_the_fleet(public) -> None:
    made = public.render({"ingress": {"enabled": True}})
    edges = Net(made).edges()
    assert {b for a, b in edges if a == "elsewhere" and b in FLEET} == {"top", "registry"}
    assert among(edges, FLEET) == among(declared(public.plan), FLEET)
    assert not {b for a, b in edges if a == "stranger" and b in FLEET}


@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_a_service_for_the_world_is_open_to_the_world(graph, kind: str) -> None:
    """An address block covers pods too, in the worst case: who may call the world may call what is open to it."""
    net = Net(graph.render({"defaults": {"service": {"type": kind}}}))
    assert {b for a, b in net.edges() if a == "elsewhere" and b in FLEET} == {"top", "registry"}
    worst = {("right", "top"), ("right", "registry")}
    assert among(net.edges(), FLEET) == among(declared(graph.plan), FLEET) | worst


def test_one_service_for_the_world_opens_one_workload(graph) -> None:
    made = graph.render(
        {"agents": {"top": {"service": {"type": "NodePort"}}, "right": {"service": {"type": "NodePort"}}}}
    )
    assert {b for a, b in Net(made).edges() if a == "elsewhere" and b in FLEET} == {"top"}, "`right` is not published"
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
    overlay = {"defaults": {"service": {"type": "LoadBalancer"}}, "networkPolicy": {"publishedFrom": [peer]}}
    edges = Net(graph.render(overlay)).edges()
    assert not {b for a, b in edges if a == "prometheus" and b in FLEET}
    assert {b for a, b in edges if a == "elsewhere" and b in FLEET} == {"top", "registry"}


def test_peers_can_be_named(graph) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
    edges = Net(graph.render({"networkPolicy": {"publishedFrom": [peer]}})).edges()
    assert {b for a, b in edges if a == "elsewhere" and b in FLEET} == {"top", "registry"}
    assert not {b for a, b in edges if a == "prometheus" and b in FLEET}


def test_prometheus_scrapes_agents_and_registry(graph) -> None:
    edges = Net(graph.render({"serviceMonitor": {"enabled": True}})).edges()
    assert {b for a, b in edges if a == "prometheus" and b in FLEET} == {"top", "left-one", "right", "registry"}


def test_policies_are_off_when_networks_are_flat(graph) -> None:
    assert graph.render({"networkPolicy": {"enabled": False}}).of("NetworkPolicy") == {}


def test_agents_reach_the_collector_at_its_port_and_nobody_else_does(compiled) -> None:
    chart = compiled(GRAPH + "telemetry: {otlp_endpoint: 'http://otel:4318'}\n")
    net = Net(chart.render())
    agents = {"top", "left-one", "right"}
    assert {name for name in FLEET if net.reaches(name, "elsewhere", 4318)} == agents
    assert {name for name in FLEET if net.reaches(name, "elsewhere", 443)} == {"right"}
    assert among(net.edges(), FLEET) == among(declared(chart.plan), FLEET)
    narrow = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    net = Net(chart.render({"networkPolicy": {"collectorAt": narrow}}))
    assert {name for name in FLEET if net.reaches(name, "prometheus", 4318)} == agents
    assert {name for name in FLEET if net.reaches(name, "elsewhere", 4318)} == {"right"}

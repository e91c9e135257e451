"""The policies, evaluated for every connection at every port: what the graph declares gets through, and nothing else.

test_cyclonus.py has the same connections judged by an evaluator that is not ours.
"""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import GRAPH
from .fleet_network import METADATA, Network, Promise
from .network_policies import NAME_LABEL, Policies, pod

pytestmark = pytest.mark.helm

FLEET = {"top", "left-one", "right", "tools", "model", "registry"}
OTHER = {"namespaceSelector": {"matchLabels": {NAME_LABEL: "other"}}}


def broken(network: Network, promise: Promise) -> list[str]:
    """Return each connection that the policies treat otherwise than promised."""
    return [
        f"{item} is {'refused' if promise.holds_for(item) else 'let through'}"
        for item in network.connections()
        if network.policies.let_through(*item) is not promise.holds_for(item)
    ]


def callers(network: Network, called: str) -> set[str]:
    return {source for source, target in network.edges() if target == called}


def published(network: Network, source: str) -> set[str]:
    return {target for caller, target in network.edges() if caller == source and target in FLEET}


@pytest.mark.parametrize("name", ["one", "chain", "diamond", "published", "everything"])
def test_every_connection_is_as_promised(topology_fleets, topologies, name: str) -> None:
    published_to = {"published": "namespaces", "everything": "world"}.get(name, "nobody")
    promise = Promise(topology_fleets[name].chart.plan, published_to, monitored=name == "everything")
    assert broken(Network(topologies[name]), promise) == []


@pytest.mark.parametrize("name", ["02-pallas", "03-data-pool", "04-percolate"])
def test_every_connection_of_an_example_is_as_promised(example, name: str) -> None:
    chart = example(name)
    options = ("--set", "secrets.fastagent-secrets-yaml.content=x") if name != "03-data-pool" else ()
    assert broken(Network(chart.render(None, *options)), Promise(chart.plan)) == []


def test_every_connection_of_the_graph_is_as_promised(graph, plain) -> None:
    assert broken(Network(plain), Promise(graph.plan)) == []


def test_every_policy_says_both_types_and_who_it_is_for(topologies) -> None:
    for manifests in topologies.values():
        for item in manifests.of("NetworkPolicy").values():
            assert item["spec"]["policyTypes"] == ["Ingress", "Egress"]
            assert item["spec"]["podSelector"]["matchLabels"]
            assert item["metadata"]["namespace"] == "space"


def test_what_the_test_of_the_chart_may_do(graph, plain) -> None:
    """It calls each agent and the registry, asks for names, and is called by nobody."""
    network = Network(plain)
    agents = {"top", "left-one", "right"}
    assert {target for source, target in network.edges() if source == "pallas-test"} == agents | {"registry"}
    assert callers(network, "pallas-test") == set()
    test, dns = network.members["pallas-test"], network.strangers["dns"]
    assert all(network.policies.let_through(test, dns, 53, protocol) for protocol in ("TCP", "UDP"))
    away = [*network.strangers.values(), *network.outside.values()]
    at_53 = {peer.name for peer in away if network.policies.let_through(test, peer, 53, "UDP")}
    assert at_53 == {"dns"}


def test_only_egress_reaches_the_world_and_no_metadata_of_clouds(plain) -> None:
    network = Network(plain)
    right = network.members["right"]
    assert {name for name in FLEET if (name, "elsewhere") in network.edges(443)} == {"right"}
    reached = {name for name, peer in network.outside.items() if network.policies.let_through(right, peer, 443)}
    assert reached == set(network.outside) - set(METADATA)


@pytest.mark.parametrize(
    ("reach", "reached"),
    [
        ("10.20.0.0/16", {"partner"}),
        ("0.0.0.0/0", {"partner", "neighbour", "internet"}),
        ("100.64.0.0/10", set()),
        ("agents.example.com", {"partner", "neighbour", "internet", "internet-v6"}),
    ],
)
def test_registered_agents_are_reached_and_no_metadata_of_clouds(compiled, reach: str, reached: set[str]) -> None:
    registration = f"registry: {{registration: {{reach: [{reach}], tokens: {{partner: {{file: token.txt}}}}}}}}\n"
    chart = compiled(GRAPH + registration, token__txt="x\n")
    network = Network(chart.render(None, "--set=secrets.token-txt.existingSecret=mine"))
    registry = network.members["registry"]
    outside = {name for name, peer in network.outside.items() if network.policies.let_through(registry, peer, 9000)}
    assert outside == reached


def test_what_is_published_is_open_to_others_but_not_to_the_fleet(public) -> None:
    network = Network(public.render({"ingress": {"enabled": True}}))
    assert broken(network, Promise(public.plan, "namespaces")) == []
    assert published(network, "elsewhere") == {"top", "registry"}
    assert published(network, "stranger") == set()


@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_a_service_for_the_world_is_open_to_the_world(graph, kind: str) -> None:
    """Pods have addresses too: who may call the world may call what is open to it."""
    network = Network(graph.render({"defaults": {"service": {"type": kind}}}))
    assert broken(network, Promise(graph.plan, "world")) == []
    assert published(network, "internet") == published(network, "elsewhere") == {"top", "registry"}
    assert published(network, "right") == {"top", "registry"}


def test_one_service_for_the_world_opens_one_workload(graph) -> None:
    node_port = {"service": {"type": "NodePort"}}
    network = Network(graph.render({"agents": {"top": node_port, "right": node_port}}))
    assert published(network, "elsewhere") == {"top"}, "`right` is not published"


@pytest.mark.parametrize("values", [{}, {"defaults": {"service": {"type": "LoadBalancer"}}}])
def test_who_may_call_can_be_named(graph, values: dict[str, Any]) -> None:
    network = Network(graph.render({**values, "networkPolicy": {"publishedFrom": [OTHER]}}))
    assert published(network, "elsewhere") == {"top", "registry"}
    assert published(network, "prometheus") == published(network, "internet") == set()


def test_prometheus_scrapes_agents_and_registry(graph) -> None:
    network = Network(graph.render({"serviceMonitor": {"enabled": True}}))
    assert broken(network, Promise(graph.plan, monitored=True)) == []
    assert published(network, "prometheus") == {"top", "left-one", "right", "registry"}


def test_policies_are_off_when_networks_are_flat(graph) -> None:
    assert graph.render({"networkPolicy": {"enabled": False}}).of("NetworkPolicy") == {}


def test_agents_reach_the_collector_at_its_port_and_nobody_else_does(compiled) -> None:
    chart = compiled(GRAPH + "telemetry: {otlp_endpoint: 'http://otel:4318'}\n")
    assert broken(Network(chart.render()), Promise(chart.plan)) == []
    narrow = [{"namespaceSelector": {"matchLabels": {NAME_LABEL: "monitoring"}}}]
    edges = Network(chart.render({"networkPolicy": {"collectorAt": narrow}})).edges(4318)
    assert {source for source, target in edges if target == "prometheus"} == {"top", "left-one", "right"}
    assert {source for source, target in edges if target == "elsewhere"} == {"right"}


@pytest.mark.parametrize(
    ("key", "port"), [("dnsTo", 53), ("collectorAt", 4318), ("egressTo", 443)], ids=["dns", "collector", "world"]
)
def test_an_empty_list_of_peers_opens_nothing(compiled, key: str, port: int) -> None:
    """To Kubernetes `to: []` is everybody, cloud metadata too."""
    chart = compiled(GRAPH.replace("egress: true, ", "") + "telemetry: {otlp_endpoint: 'http://otel:4318'}\n")
    overlay = {"agents": {"top": {"egress": True}}, "networkPolicy": {"egressTo": [OTHER], key: []}}
    network = Network(chart.render(overlay))
    assert {target for source, target in network.edges(port) if source in {*FLEET, "pallas-test"}} <= (
        set() if key == "egressTo" else {"elsewhere"}
    )


def test_the_evaluator_itself() -> None:
    """By policies that have nothing to do with the kit."""
    database = pod(
        "db",
        "shop",
        {"app": "db"},
        {"containers": [{"ports": [{"name": "sql", "containerPort": 5432}]}]},
        address="10.0.0.1",
    )
    web = pod("web", "shop", {"app": "web"}, {}, address="10.0.0.2")
    guest = pod("guest", "yard", {"app": "web"}, {}, address="10.0.0.3")

    def one(**spec: Any) -> Policies:
        about = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
        spec = {"podSelector": {"matchLabels": {"app": "db"}}, **spec}
        return Policies([{**about, "metadata": {"name": "p", "namespace": "shop"}, "spec": spec}])

    def opened(policies: Policies) -> list[tuple[str, int]]:
        asked = [(source, port) for source in (web, guest) for port in (5432, 5433)]
        return [(source.name, port) for source, port in asked if policies.let_through(source, database, port)]

    everything = [("web", 5432), ("web", 5433), ("guest", 5432), ("guest", 5433)]
    assert opened(Policies([])) == opened(one(ingress=[{}])) == opened(one(policyTypes=["Egress"])) == everything
    assert opened(one()) == opened(one(policyTypes=["Ingress", "Egress"], egress=[{}])) == []
    assert opened(one(ingress=[{"from": []}])) == everything, "no peer is everybody"
    assert opened(one(ingress=[{"ports": [{"port": "sql"}]}])) == [("web", 5432), ("guest", 5432)]
    assert opened(one(ingress=[{"ports": [{"port": 5000, "endPort": 5432}]}])) == [("web", 5432), ("guest", 5432)]
    assert opened(one(ingress=[{"ports": [{"port": 5432, "protocol": "UDP"}]}])) == []
    by_label = {"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    assert opened(one(ingress=[{"from": [by_label]}])) == [("web", 5432), ("web", 5433)]
    yard = {"namespaceSelector": {"matchExpressions": [{"key": NAME_LABEL, "operator": "NotIn", "values": ["shop"]}]}}
    assert opened(one(ingress=[{"from": [yard]}])) == [("guest", 5432), ("guest", 5433)]
    calls = {"none": [], "some": [{"to": [yard]}]}
    called = {key: one(egress=rules).let_through(database, web, 80) for key, rules in calls.items()}
    assert called == {"none": True, "some": False}, "without `policyTypes` only rules for calls make it one for calls"
    block = {"ipBlock": {"cidr": "10.0.0.0/24", "except": ["10.0.0.2/32"]}}
    assert opened(one(ingress=[{"from": [block]}])) == [("guest", 5432), ("guest", 5433)]
    with pytest.raises(AssertionError, match="lie within its block"):
        opened(one(ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/24", "except": ["10.0.0.0/16"]}}]}]))
    with pytest.raises(AssertionError, match="not understood"):
        opened(one(ingress=[{"form": [block]}]))

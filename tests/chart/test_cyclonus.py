"""The policies judged by somebody else: cyclonus, an evaluator and tester of network policies.

It is asked about every connection that test_network.py asks our own evaluator about.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import GRAPH
from .fleet_network import Connection, Network, Promise
from .network_policies import NAME_LABEL, OUTSIDE, Endpoint, Object

pytestmark = [pytest.mark.helm, pytest.mark.policy, pytest.mark.slow]

Judge = Callable[[list[Object], list[Connection]], list[bool]]
SECRET = "--set=secrets.fastagent-secrets-yaml.content=x"


def peer(endpoint: Endpoint) -> Object:
    if endpoint.namespace == OUTSIDE:
        return {"IP": str(endpoint.address)}
    internal = {
        "Namespace": endpoint.namespace,
        "NamespaceLabels": {NAME_LABEL: endpoint.namespace},
        "PodLabels": endpoint.labels,
    }
    return {"IP": str(endpoint.address), "Internal": internal}


def traffic(item: Connection) -> Object:
    port = (item.protocol, item.port)
    named = {(protocol, number): name for (protocol, name), number in item.target.ports.items()}
    return {
        "Source": peer(item.source),
        "Destination": peer(item.target),
        "ResolvedPort": item.port,
        "ResolvedPortName": named.get(port, ""),
        "Protocol": item.protocol,
    }


@pytest.fixture(scope="module")
def cyclonus(root: Path) -> Judge:
    """Return what asks cyclonus, for each connection, whether both ends allow it."""
    folder = subprocess.run([root / "tools" / "policy"], check=True, capture_output=True, text=True).stdout.strip()

    def judge(policies: list[Object], connections: list[Connection]) -> list[bool]:
        question = json.dumps({"policies": policies, "traffic": [traffic(item) for item in connections]})
        done = subprocess.run(
            [Path(folder) / "cyclonus"], check=False, input=question, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        verdicts = json.loads(done.stdout)
        assert len(verdicts) == len(connections)
        return [verdict["ingress"] and verdict["egress"] for verdict in verdicts]

    return judge


@pytest.fixture(scope="module")
def promised(topology_fleets, topologies, example, graph, public, compiled) -> dict[str, tuple[Network, Promise]]:
    """Return networks of different shape, each with what is promised of it."""
    networks = {name: (Network(topologies[name]), Promise(fleet.chart.plan)) for name, fleet in topology_fleets.items()}
    plan = topology_fleets["published"].chart.plan
    networks["published"] = (networks["published"][0], Promise(plan, "namespaces"))
    networks["everything"] = (networks["everything"][0], Promise(plan, "world", monitored=True))
    pallas = example("02-pallas")
    networks["02-pallas"] = (Network(pallas.render(None, SECRET)), Promise(pallas.plan))
    networks["graph"] = (Network(graph.render()), Promise(graph.plan))
    traced = compiled(GRAPH + "telemetry: {otlp_endpoint: 'http://otel:4318'}\n")
    networks["traced"] = (Network(traced.render()), Promise(traced.plan))
    networks["proxy"] = (Network(public.render({"ingress": {"enabled": True}})), Promise(public.plan, "namespaces"))
    return networks


def test_it_finds_every_connection_as_promised(cyclonus: Judge, promised) -> None:
    for name, (network, promise) in promised.items():
        connections = list(network.connections())
        verdicts = cyclonus(network.objects, connections)
        assert True in verdicts
        assert False in verdicts
        other = [
            str(item)
            for item, verdict in zip(connections, verdicts, strict=True)
            if verdict is not promise.holds_for(item)
        ]
        assert other == [], name


def rules(policy: Any, direction: str) -> Any:
    return policy["spec"][direction]


FAULTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no policy": lambda all_: all_.clear(),
    "one type only": lambda all_: [item["spec"].update(policyTypes=["Ingress"]) for item in all_.values()],
    "a list of nobody": lambda all_: rules(all_["left-one"], "ingress")[0]["from"].clear(),
    "a port too many": lambda all_: [
        rules(all_[name], direction)[index]["ports"].append({"port": 443})
        for name, direction, index in (("top", "egress", 1), ("left-one", "ingress", 0))
    ],
    "another port": lambda all_: rules(all_["pallas-test"], "egress")[0]["ports"][0].update(port=106),
    "a range": lambda all_: rules(all_["top"], "egress")[0]["ports"].append({"port": 8000, "endPort": 8100}),
    "a named port": lambda all_: rules(all_["top"], "ingress")[0].update(
        ports=[{"port": "mcp"}, {"port": "none"}], **{"from": []}
    ),
    "a policy of another namespace": lambda all_: all_["top"]["metadata"].update(namespace="other"),
    "no exception": lambda all_: rules(all_["right"], "egress")[-1]["to"][0]["ipBlock"].pop("except"),
    "names from anywhere": lambda all_: rules(all_["tools"], "egress")[0].pop("to"),
    "a smaller world": lambda all_: rules(all_["right"], "egress")[-1]["to"][0]["ipBlock"].update(
        cidr="10.0.0.0/8", **{"except": ["10.20.0.0/16"]}
    ),
    "a selector of everybody": lambda all_: rules(all_["model"], "ingress")[0]["from"].append({"podSelector": {}}),
    "every namespace": lambda all_: rules(all_["model"], "ingress")[0]["from"].append({"namespaceSelector": {}}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_both_evaluators_see_the_same_in_broken_policies(cyclonus: Judge, graph, plain, fault: str) -> None:
    network = Network(plain)
    policies = {item["metadata"]["name"]: copy.deepcopy(item) for item in network.objects}
    FAULTS[fault](policies)
    manifests = type(plain)([*policies.values(), *(item for item in plain.objects if item["kind"] != "NetworkPolicy")])
    network, promise = Network(manifests), Promise(graph.plan)
    connections = list(network.connections())
    verdicts = cyclonus(network.objects, connections)
    assert verdicts == [network.policies.let_through(*item) for item in connections]
    assert verdicts != [promise.holds_for(item) for item in connections]

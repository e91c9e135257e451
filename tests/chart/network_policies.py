"""NetworkPolicies, evaluated as the Kubernetes API documents them. What is not understood is an error, never a yes.

Addresses are real: a pod is inside an address block like any other address, and outside of it by `except`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

Object = Mapping[str, Any]
Labels = Mapping[str, str]
NAME_LABEL = "kubernetes.io/metadata.name"
"""Kubernetes gives it to every namespace."""
OUTSIDE = ""
"""The namespace of what is in no cluster."""


@dataclass(frozen=True)
class Endpoint:
    """One end of a call: a pod, or an address outside of the cluster."""

    name: str
    address: IPv4Address | IPv6Address
    namespace: str = OUTSIDE
    labels: Labels = field(default_factory=dict)
    ports: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(protocol, name) -> number, as its containers declare them."""


def pod(name: str, namespace: str, labels: Labels, spec: Object, *, address: str) -> Endpoint:
    """Return a pod from its template's spec."""
    declared = [port for container in spec.get("containers", ()) for port in container.get("ports", ())]
    named = {(port.get("protocol", "TCP"), port["name"]): port["containerPort"] for port in declared if "name" in port}
    return Endpoint(name, ip_address(address), namespace, labels, named)


class Policies:
    """The NetworkPolicy objects of a cluster."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self._objects = [item for item in objects if item["kind"] == "NetworkPolicy"]
        for item in self._objects:
            assert_understood(item, "apiVersion", "kind", "metadata", "spec")
            assert_understood(item["spec"], "podSelector", "policyTypes", "ingress", "egress")
            assert item["apiVersion"] == "networking.k8s.io/v1"

    def let_through(self, source: Endpoint, target: Endpoint, port: int, protocol: str = "TCP") -> bool:
        """Return whether `source` may open a connection to `target`: both ends have to allow it."""
        called = (target, port, protocol)
        return self._side("Egress", source, target, called) and self._side("Ingress", target, source, called)

    def _side(self, direction: str, subject: Endpoint, peer: Endpoint, called: tuple[Endpoint, int, str]) -> bool:
        policies = [item for item in self._objects if direction in types(item["spec"]) and applies(item, subject)]
        end = "to" if direction == "Egress" else "from"
        return not policies or any(
            matches(rule, end, item["metadata"]["namespace"], peer) and opens(rule, *called)
            for item in policies
            for rule in item["spec"].get(direction.lower()) or ()
        )


def assert_understood(item: Object, *keys: str) -> None:
    assert set(item) <= set(keys), f"not understood: {sorted(set(item) - set(keys))}"


def types(spec: Object) -> list[str]:
    """Return its `policyTypes`; where it has none they follow from the rules."""
    policy_types: list[str] = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    assert set(policy_types) <= {"Ingress", "Egress"}
    return policy_types


def applies(policy: Object, endpoint: Endpoint) -> bool:
    same = endpoint.namespace == policy["metadata"]["namespace"]
    return same and selects(policy["spec"].get("podSelector") or {}, endpoint.labels)


def matches(rule: Object, end: str, namespace: str, peer: Endpoint) -> bool:
    """Return whether one of a rule's peers covers an endpoint; a rule without any covers everybody."""
    assert_understood(rule, "ports", end)
    return not rule.get(end) or any(covers(entry, namespace, peer) for entry in rule[end])


def covers(entry: Object, namespace: str, peer: Endpoint) -> bool:
    assert_understood(entry, "ipBlock", "podSelector", "namespaceSelector")
    if "ipBlock" in entry:
        assert set(entry) == {"ipBlock"}, "an address block stands alone"
        return inside(entry["ipBlock"], peer)
    assert entry, "a peer without any field is invalid"
    if peer.namespace == OUTSIDE:
        return False
    if "namespaceSelector" in entry:
        here = selects(entry["namespaceSelector"], {NAME_LABEL: peer.namespace})
    else:
        here = peer.namespace == namespace
    return here and selects(entry.get("podSelector") or {}, peer.labels)


def inside(block: Object, peer: Endpoint) -> bool:
    assert_understood(block, "cidr", "except")
    cidr = ip_network(block["cidr"])
    holes = [ip_network(hole) for hole in block.get("except") or ()]
    assert all(hole != cidr and hole.subnet_of(cidr) for hole in holes), "an exception must lie within its block"
    return peer.address in cidr and not any(peer.address in hole for hole in holes)


def opens(rule: Object, target: Endpoint, port: int, protocol: str) -> bool:
    """Return whether a rule is for this port of `target`; a rule without any is for all."""
    return not rule.get("ports") or any(is_port(entry, target, port, protocol) for entry in rule["ports"])


def is_port(entry: Object, target: Endpoint, port: int, protocol: str) -> bool:
    assert_understood(entry, "port", "endPort", "protocol")
    assert entry.get("protocol", "TCP") in ("TCP", "UDP", "SCTP")
    if entry.get("protocol", "TCP") != protocol:
        return False
    first = entry.get("port")
    if isinstance(first, str):
        assert "endPort" not in entry, "a range is of numbers"
        return target.ports.get((protocol, first)) == port
    return first is None or first <= port <= entry.get("endPort", first)


def selects(selector: Object, labels: Labels) -> bool:
    """Return whether a label selector selects; an empty one selects everything."""
    assert_understood(selector, "matchLabels", "matchExpressions")
    exact = (selector.get("matchLabels") or {}).items() <= labels.items()
    return exact and all(holds(rule, labels) for rule in selector.get("matchExpressions") or ())


def holds(rule: Object, labels: Labels) -> bool:
    assert_understood(rule, "key", "operator", "values")
    key, operator, values = rule["key"], rule["operator"], rule.get("values") or ()
    assert operator in ("In", "NotIn", "Exists", "DoesNotExist")
    assert bool(values) == (operator in ("In", "NotIn"))
    present = labels.get(key) in values if values else key in labels
    return present is (operator in ("In", "Exists"))

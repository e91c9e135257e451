"""Two members that reach each other no more, by the NetworkPolicies of the chart."""

from __future__ import annotations

import json
from typing import Any

from pallas_testing.project.fleet_file import GATEWAY, REGISTRY, slug
from pallas_testing.targets.base import Undo, undone
from pallas_testing.targets.cluster.kubectl import Kubectl


def partition(kubectl: Kubectl, one: str, other: str) -> Undo | None:
    """Take each out of the other's NetworkPolicy; open connections go on where the network plugin lets them.

    Returns what undoes it, None where no policy lets them reach each other.
    """
    policies = {}
    narrowed = {}
    for caller, callee in ((one, other), (other, one)):
        policy = json.loads(kubectl("get", "networkpolicy", slug(callee), "--output=json"))
        policy["metadata"].pop("resourceVersion", None)
        policies[callee] = policy
        narrowed[callee] = without(policy, slug(caller))
    changed = [callee for callee in policies if narrowed[callee] != policies[callee]]
    if not changed:
        return None

    def undo() -> None:
        for callee in changed:
            kubectl("replace", "--filename=-", stdin=json.dumps(policies[callee]))

    with undone(undo):
        for callee in changed:
            kubectl("replace", "--filename=-", stdin=json.dumps(narrowed[callee]))
    return undo


def without(policy: dict[str, Any], caller: str) -> dict[str, Any]:
    """Return a NetworkPolicy that does not let pods of `caller` in."""

    def other(peer: dict[str, Any]) -> bool:
        labels = peer.get("podSelector", {}).get("matchLabels", {})
        component = caller if caller in (GATEWAY, REGISTRY) else "agent"
        name = labels.get("app.kubernetes.io/name", caller if caller == REGISTRY else None)
        return (name, labels.get("app.kubernetes.io/component")) != (caller, component)

    rules = policy["spec"].get("ingress", [])
    narrowed = [{**rule, "from": list(filter(other, rule["from"]))} if rule.get("from") else rule for rule in rules]
    # a rule without anybody in `from` lets everybody in, so one that has lost all of them has to go
    remaining = [rule for rule, before in zip(narrowed, rules, strict=True) if rule == before or rule["from"]]
    return {**policy, "spec": {**policy["spec"], "ingress": remaining}}

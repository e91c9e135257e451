"""The enforcer of `tools/cluster`, by packets, under the policies that the Kubernetes documentation explains them with.

Nothing here is of the kit: it must enforce whatever policies there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tools.netpol.rules import ruleset

from . import lab

pytestmark = [pytest.mark.root, pytest.mark.slow]

PODS = {
    "shop/db": {"app": "db"},
    "shop/web": {"app": "web", "tier": "front"},
    "shop/batch": {"app": "batch"},
    "yard/web": {"app": "web"},
    "yard/probe": {"app": "probe"},
    "names/dns": {"app": "dns"},
}
EVERYBODY = set(PODS)
SHOP = {name for name in PODS if name.startswith("shop/")}
ALL: dict[str, Any] = {}
"""The selector of everything, and the rule that allows everything."""
DB = {"matchLabels": {"app": "db"}}
WEB = {"matchLabels": {"app": "web"}}
BOTH = ["Ingress", "Egress"]


@pytest.fixture(scope="module")
def node() -> Iterator[lab.Lab]:
    with lab.running(PODS) as made:
        yield made


def policy(namespace: str = "shop", name: str = "one", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"podSelector": ALL, **spec}}


def space(*names: str, operator: str = "In") -> dict[str, Any]:
    rule = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": list(names)}
    return {"namespaceSelector": {"matchExpressions": [rule]}}


def test_without_a_policy_everybody_talks_to_everybody(node: lab.Lab) -> None:
    node.enforce()
    for version in (4, 6):
        assert node.callers("shop/db", version=version) == EVERYBODY
        assert node.callers("shop/db", protocol="UDP", version=version) == EVERYBODY


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("types", [{}, {"policyTypes": ["Ingress"]}])
def test_deny_all_ingress(node: lab.Lab, types: dict[str, Any], version: int) -> None:
    """Only into pods of its own namespace, and only into them: answers to their own calls come back."""
    node.enforce(policy(**types))
    assert node.callers("shop/db", version=version) == {"shop/db"}
    assert node.callers("shop/db", protocol="UDP", version=version) == {"shop/db"}
    assert node.callers("yard/web", version=version) == EVERYBODY


@pytest.mark.parametrize("version", [4, 6])
def test_deny_all_egress(node: lab.Lab, version: int) -> None:
    node.enforce(policy(policyTypes=["Egress"]))
    assert node.callers("yard/web", version=version) == EVERYBODY - SHOP
    assert node.callers("shop/db", version=version) == EVERYBODY - SHOP | {"shop/db"}


def test_deny_all_and_a_node_that_probes(node: lab.Lab) -> None:
    node.enforce(policy(policyTypes=BOTH))
    assert node.callers("shop/db") == {"shop/db"}
    assert node.reached("node", "shop/db")


def test_allow_all_beside_deny_all(node: lab.Lab) -> None:
    """Policies add up."""
    deny, allow = policy(policyTypes=BOTH), policy(name="two", policyTypes=BOTH, ingress=[ALL], egress=[ALL])
    node.enforce(deny, allow)
    assert node.callers("shop/db") == EVERYBODY


def test_allow_the_same_namespace(node: lab.Lab) -> None:
    node.enforce(policy(ingress=[{"from": [{"podSelector": ALL}]}]))
    assert node.callers("shop/db") == SHOP


def test_allow_all_namespaces_and_chosen_ones(node: lab.Lab) -> None:
    node.enforce(policy(ingress=[{"from": [{"namespaceSelector": ALL}]}]))
    assert node.callers("shop/db") == EVERYBODY
    node.enforce(policy(ingress=[{"from": [space("yard")]}]))
    assert node.callers("shop/db") == {"shop/db", "yard/web", "yard/probe"}
    node.enforce(policy(ingress=[{"from": [space("yard", operator="NotIn")]}]))
    assert node.callers("shop/db") == SHOP | {"names/dns"}


def test_one_peer_with_two_selectors_is_not_two_peers(node: lab.Lab) -> None:
    node.enforce(policy(podSelector=DB, ingress=[{"from": [{**space("yard"), "podSelector": WEB}]}]))
    assert node.callers("shop/db") == {"shop/db", "yard/web"}
    node.enforce(policy(podSelector=DB, ingress=[{"from": [space("yard"), {"podSelector": WEB}]}]))
    assert node.callers("shop/db") == {"shop/db", "shop/web", "yard/web", "yard/probe"}
    assert node.callers("shop/batch") == EVERYBODY, "it is selected by no policy"


@pytest.mark.parametrize(
    ("rule", "callers"),
    [
        ({"key": "tier", "operator": "Exists"}, {"shop/web"}),
        ({"key": "tier", "operator": "DoesNotExist"}, {"shop/batch"}),
        ({"key": "app", "operator": "NotIn", "values": ["web", "cron"]}, {"shop/batch"}),
    ],
)
def test_expressions(node: lab.Lab, rule: dict[str, Any], callers: set[str]) -> None:
    peer = {"podSelector": {"matchExpressions": [rule]}}
    node.enforce(policy(podSelector=DB, ingress=[{"from": [peer]}]))
    assert node.callers("shop/db") == callers | {"shop/db"}


def test_an_empty_list_of_peers_is_everybody_and_of_rules_nobody(node: lab.Lab) -> None:
    node.enforce(policy(ingress=[{"from": []}]))
    assert node.callers("shop/db") == EVERYBODY
    node.enforce(policy(ingress=[]))
    assert node.callers("shop/db") == {"shop/db"}


@pytest.mark.parametrize("version", [4, 6])
def test_an_address_block_with_an_exception(node: lab.Lab, version: int) -> None:
    web = f"{node.addresses['yard/web'][version // 6]}/{32 if version == 4 else 128}"
    world = ("0.0.0.0/0", "::/0")[version // 6]
    whole = {"ipBlock": {"cidr": world, "except": [web]}}
    node.enforce(policy(ingress=[{"from": [whole]}]))
    assert node.callers("shop/db", version=version) == EVERYBODY - {"yard/web"}
    assert node.callers("shop/db", version=10 - version) == {"shop/db"}, "a block is of one family"
    node.enforce(policy(ingress=[{"from": [{"ipBlock": {"cidr": world}}]}]))
    assert node.callers("shop/db", version=version) == EVERYBODY
    assert node.callers("shop/db", version=10 - version) == {"shop/db"}
    node.enforce(policy(policyTypes=BOTH, egress=[{"to": [{"ipBlock": {"cidr": web}}]}]))
    assert node.reached("shop/db", "yard/web", version=version)
    assert not node.reached("shop/db", "yard/probe", version=version)


def open_ports(node: lab.Lab, source: str, target: str) -> list[int]:
    return [port for port in lab.PORTS if node.reached(source, target, port=port)]


@pytest.mark.parametrize(
    ("ports", "reached"),
    [
        ([{"port": 443}], [443]),
        ([{"port": 80, "endPort": 443}], [80, 443]),
        ([{"port": 400, "endPort": 6000, "protocol": "TCP"}], [443, 5432]),
        ([{"port": "sql"}, {"port": "web", "protocol": "UDP"}], [5432]),
        ([{"port": "nowhere"}], []),
        ([{"protocol": "TCP"}], [80, 443, 5432]),
        ([{"port": 80, "protocol": "UDP"}], []),
        ([], [80, 443, 5432]),
    ],
)
def test_ports(node: lab.Lab, ports: list[Any], reached: list[int]) -> None:
    """In at who is called, and out at who calls."""
    node.enforce(policy(podSelector=DB, ingress=[{"ports": ports, "from": [{"podSelector": ALL}]}]))
    assert open_ports(node, "shop/web", "shop/db") == reached
    assert open_ports(node, "yard/web", "shop/db") == []
    node.enforce(policy(podSelector=WEB, policyTypes=["Egress"], egress=[{"ports": ports}]))
    assert open_ports(node, "shop/web", "shop/db") == open_ports(node, "shop/web", "yard/web") == reached


def test_a_name_of_a_port_is_for_each_pod_what_its_own_containers_call_so(node: lab.Lab, request: Any) -> None:
    """The called pod's, in both directions; a sidecar is one of its containers."""
    request.addfinalizer(node.specs.clear)
    node.specs["yard/web"] = {"containers": [{"ports": [{"name": "sql", "containerPort": 443}]}]}
    node.specs["yard/probe"] = {"containers": [{}], "initContainers": [{"ports": lab.NAMED}]}
    named = [{"ports": [{"port": "sql"}]}]
    sql = {"shop/db": [5432], "shop/web": [5432], "yard/web": [443], "yard/probe": [5432], "names/dns": [5432]}
    node.enforce(policy(podSelector={"matchLabels": {"app": "batch"}}, policyTypes=["Egress"], egress=named))
    assert {name: open_ports(node, "shop/batch", name) for name in sql} == sql
    node.enforce(*(policy(namespace, ingress=named) for namespace in ("shop", "yard", "names")))
    assert {name: open_ports(node, "shop/batch", name) for name in sql} == sql


def test_a_name_is_of_a_port_of_its_protocol(node: lab.Lab) -> None:
    node.enforce(policy(podSelector=DB, ingress=[{"ports": [{"port": "ask", "protocol": "UDP"}, {"port": "ask"}]}]))
    assert node.callers("shop/db", protocol="UDP") == EVERYBODY
    assert node.callers("shop/db") == {"shop/db"}


def test_udp_is_no_tcp(node: lab.Lab) -> None:
    for port in ({"port": 80, "protocol": "UDP"}, {"protocol": "UDP"}):
        node.enforce(policy(ingress=[{"ports": [port]}]))
        assert node.callers("shop/db", protocol="UDP") == EVERYBODY
        assert node.callers("shop/db") == {"shop/db"}


def test_names_only(node: lab.Lab) -> None:
    """A pod that may resolve names and do nothing else."""
    names = {"to": [space("names")], "ports": [{"port": 80, "protocol": "UDP"}]}
    node.enforce(policy(podSelector=WEB, policyTypes=["Egress"], egress=[names]))
    assert node.reached("shop/web", "names/dns", protocol="UDP")
    assert not node.reached("shop/web", "names/dns")
    assert not node.reached("shop/web", "yard/probe", protocol="UDP")


def test_rules_for_calls_say_by_themselves_that_they_are_for_calls(node: lab.Lab) -> None:
    """Without `policyTypes`: a policy with rules for egress is for both."""
    node.enforce(policy(podSelector=WEB, egress=[{"to": [{"podSelector": DB}]}]))
    assert node.reached("shop/web", "shop/db")
    assert not node.reached("shop/web", "shop/batch")
    assert node.callers("shop/web") == {"shop/web"}


def test_a_service_hides_nobody_and_a_pod_reaches_itself(node: lab.Lab) -> None:
    node.serve_at("10.96.0.1", "shop/db")
    node.enforce()
    assert node.callers("shop/db-service") == EVERYBODY
    node.enforce(policy(podSelector=DB, policyTypes=BOTH, ingress=[{"from": [space("yard")]}]))
    assert node.callers("shop/db-service") == {"shop/db", "yard/web", "yard/probe"}


def test_both_ends_have_to_allow_it(node: lab.Lab) -> None:
    out = policy(podSelector=WEB, policyTypes=["Egress"], egress=[{"to": [{"podSelector": DB}]}])
    into = policy(
        "shop", "two", podSelector=DB, ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "batch"}}}]}]
    )
    node.enforce(out, into)
    assert not node.reached("shop/web", "shop/db")
    assert not node.reached("shop/web", "shop/batch")
    assert node.callers("shop/db") == {"shop/db", "shop/batch"}


def test_nobody_is_called_back(node: lab.Lab) -> None:
    node.enforce(
        policy(podSelector=WEB, policyTypes=BOTH, egress=[{"to": [{"podSelector": DB}]}]),
        policy(name="two", podSelector=DB, policyTypes=BOTH, ingress=[{"from": [{"podSelector": WEB}]}]),
    )
    assert node.reached("shop/web", "shop/db")
    assert not node.reached("shop/db", "shop/web")


def test_pods_without_an_address_of_their_own_are_no_concern(node: lab.Lab) -> None:
    """Those of the node's network, those that ended, and those that wait for an address."""
    pods, namespaces = node.objects()
    before = ruleset(pods, namespaces, [policy()])
    template = json.dumps(pods[0])
    more = [json.loads(template) for _ in range(4)]
    more[0]["spec"]["hostNetwork"] = True
    more[1]["status"]["phase"] = "Succeeded"
    more[2]["status"] = {"phase": "Pending"}
    more[3]["status"]["phase"] = "Failed"
    assert ruleset([*more, *reversed(pods)], namespaces, [policy()]) == before


def test_a_pod_that_goes_loses_its_way(node: lab.Lab) -> None:
    pods, namespaces = node.objects()
    text = ruleset(pods, namespaces, [policy(ingress=[{"from": [{"podSelector": WEB}]}])])
    address = node.addresses["shop/web"][0]
    assert f"ip saddr {address} return" in text
    fewer = [item for item in pods if item["metadata"]["name"] != "web"]
    assert address not in ruleset(fewer, namespaces, [policy(ingress=[{"from": [{"podSelector": WEB}]}])])

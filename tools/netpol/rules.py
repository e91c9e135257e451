"""NetworkPolicies as an nftables ruleset: a chain per pod and direction, for any policies and any pods.

Pods that no policy selects have no chain and talk to everybody. What comes from or goes to the node itself is not
forwarded, so no rule here sees it: Kubernetes lets a node probe its pods, whatever policies say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

TABLE = "inet pallas_cluster"
Object = Mapping[str, Any]
Labels = Mapping[str, str]

_HEAD = f"""\
table {TABLE} {{
}}
delete table {TABLE}
table {TABLE} {{
  chain forward {{
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, nd-router-advert }} accept
"""
# Refused with an answer, as kube-router does, so that nobody has to wait. Of ICMP a kernel sends only few a second.
_END = "    meta l4proto tcp reject with tcp reset\n    reject with icmpx port-unreachable\n  }\n"


@dataclass(frozen=True)
class Pod:
    """A pod with addresses of its own."""

    name: str
    namespace: str
    labels: Labels
    addresses: tuple[str, ...]
    ports: Mapping[tuple[str, str], int]
    """(protocol, name) -> number."""


def ruleset(pods: Iterable[Object], namespaces: Iterable[Object], policies: Iterable[Object]) -> str:
    """Return what `nft -f` takes, which replaces what it took before, all at once."""
    network = [pod for pod in map(_pod, pods) if pod]
    network.sort(key=lambda pod: (pod.namespace, pod.name))
    compiler = _Compiler(network, {item["metadata"]["name"]: _labels(item) for item in namespaces})
    ordered = sorted(policies, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))
    chains: list[str] = []
    jumps: list[str] = []
    for direction, own, peer in (("Egress", "saddr", "daddr"), ("Ingress", "daddr", "saddr")):
        for number, pod in enumerate(network):
            selecting = [item for item in ordered if direction in _types(item["spec"]) and _applies(item, pod)]
            if not selecting:
                continue
            chain = f"{direction.lower()}_{number}"
            # A pod cannot be kept from itself; it gets here through its own Service.
            allowed = [*(_address(text, peer) for text in pod.addresses), *compiler.rules(pod, selecting, direction)]
            lines = "".join(f"    {line} return\n" for line in dict.fromkeys(allowed))
            chains.append(f"  chain {chain} {{ # {pod.namespace}/{pod.name}\n{lines}{_END}")
            jumps += [f"    {_address(text, own)} jump {chain}\n" for text in pod.addresses]
    return f"{_HEAD}{''.join(jumps)}  }}\n{''.join(chains)}}}\n"


@dataclass(frozen=True)
class _Compiler:
    """The rules of one pod; each is what nftables matches."""

    pods: Sequence[Pod]
    namespaces: Mapping[str, Labels]

    def rules(self, pod: Pod, policies: Iterable[Object], direction: str) -> Iterator[str]:
        """Yield what a pod's policies allow in one direction."""
        end, side = ("to", "daddr") if direction == "Egress" else ("from", "saddr")
        for policy in policies:
            namespace = policy["metadata"]["namespace"]
            for rule in policy["spec"].get(direction.lower()) or ():
                peers = rule.get(end) or [None]
                for peer in peers:
                    yield from self._rule(pod, rule.get("ports") or [None], peer, namespace=namespace, side=side)

    def _rule(
        self, pod: Pod, ports: Iterable[Object | None], peer: Object | None, *, namespace: str, side: str
    ) -> Iterator[str]:
        covers = self._covers(peer, namespace)
        covered = [other for other in self.pods if covers(other)]
        if peer is None:
            sources = [""]
        elif "ipBlock" in peer:
            sources = [_block(peer["ipBlock"], side)]
        else:
            sources = [_address(text, side) for other in covered for text in other.addresses]
        for port in ports:
            if port is None or not isinstance(port.get("port"), str):
                yield from (f"{source} {_port(port)}".strip() for source in sources)
            elif side == "saddr":
                number = pod.ports.get((_protocol(port), port["port"]))
                yield from (
                    f"{source} {_protocol(port).lower()} dport {number}".strip() for source in sources if number
                )
            else:
                yield from self._named(covered, port)

    @staticmethod
    def _named(pods: Iterable[Pod], port: Object) -> Iterator[str]:
        """Yield a named port of who is called: a number of its own for each pod."""
        for pod in pods:
            number = pod.ports.get((_protocol(port), port["port"]))
            for text in pod.addresses if number else ():
                yield f"{_address(text, 'daddr')} {_protocol(port).lower()} dport {number}"

    def _covers(self, peer: Object | None, namespace: str) -> Callable[[Pod], bool]:
        """Return which pods a peer of a policy in `namespace` covers; no peer covers all."""

        def covers(pod: Pod) -> bool:
            if peer is None:
                return True
            if "ipBlock" in peer:
                return any(_inside(text, peer["ipBlock"]) for text in pod.addresses)
            if peer.get("namespaceSelector") is None:
                near = pod.namespace == namespace
            else:
                near = _selects(peer["namespaceSelector"], self.namespaces.get(pod.namespace, {}))
            return near and _selects(peer.get("podSelector") or {}, pod.labels)

        return covers


def _pod(item: Object) -> Pod | None:
    """Return a pod that policies concern: it runs, with addresses that are not the node's."""
    status = item.get("status", {})
    addresses = tuple(entry["ip"] for entry in status.get("podIPs") or ())
    if not addresses or item["spec"].get("hostNetwork") or status.get("phase") in ("Succeeded", "Failed"):
        return None
    # A sidecar is an init container that goes on running.
    containers = [*item["spec"]["containers"], *(item["spec"].get("initContainers") or ())]
    ports = {
        (_protocol(port), port["name"]): port["containerPort"]
        for container in containers
        for port in container.get("ports") or ()
        if "name" in port
    }
    about = item["metadata"]
    return Pod(about["name"], about["namespace"], _labels(item), addresses, ports)


def _labels(item: Object) -> Labels:
    labels: Labels = item["metadata"].get("labels") or {}
    return labels


def _types(spec: Object) -> Sequence[str]:
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _applies(policy: Object, pod: Pod) -> bool:
    same = policy["metadata"]["namespace"] == pod.namespace
    return same and _selects(policy["spec"].get("podSelector") or {}, pod.labels)


def _protocol(port: Object) -> str:
    return port.get("protocol") or "TCP"


def _port(port: Object | None) -> str:
    if port is None:
        return ""
    protocol = _protocol(port).lower()
    if port.get("port") is None:
        return f"meta l4proto {protocol}"
    last = f"-{port['endPort']}" if port.get("endPort") else ""
    return f"{protocol} dport {port['port']}{last}"


def _family(address: str) -> str:
    return "ip" if ip_address(address).version == 4 else "ip6"


def _address(address: str, side: str) -> str:
    return f"{_family(address)} {side} {address}"


def _block(block: Object, side: str) -> str:
    cidr = ip_network(block["cidr"], strict=False)
    family = "ip" if cidr.version == 4 else "ip6"
    # nftables knows no network of all addresses.
    inside = f"{family} {side} {cidr}" if cidr.prefixlen else f"meta nfproto ipv{cidr.version}"
    return " ".join([inside, *(f"{family} {side} != {hole}" for hole in block.get("except") or ())])


def _inside(address: str, block: Object) -> bool:
    holes = [ip_network(hole, strict=False) for hole in block.get("except") or ()]
    number = ip_address(address)
    return number in ip_network(block["cidr"], strict=False) and not any(number in hole for hole in holes)


def _selects(selector: Object, labels: Labels) -> bool:
    exact = (selector.get("matchLabels") or {}).items() <= labels.items()
    return exact and all(_holds(rule, labels) for rule in selector.get("matchExpressions") or ())


def _holds(rule: Object, labels: Labels) -> bool:
    key, operator = rule["key"], rule["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    return (labels.get(key) in rule["values"]) is (operator == "In")

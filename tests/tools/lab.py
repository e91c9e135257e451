"""A node with pods, made of network namespaces, and real packets between them."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tools.netpol.rules import ruleset

Object = Mapping[str, Any]
PORTS = (80, 443, 5432)
"""Open in every pod, over TCP; and over UDP, where an answer is sent to whoever asks."""
NAMED = [
    {"name": "web", "containerPort": 80},
    {"name": "sql", "containerPort": 5432},
    {"name": "ask", "containerPort": 80, "protocol": "UDP"},
]
TIMEOUT = 20.0
"""Seconds, never reached: a call is answered or refused at once."""
_ports = count(10_000)
"""Each call comes from a port of its own: the kernel remembers earlier ones, and lets their like through."""


class Lab:
    """Pods by `namespace/name`, and the node between them."""

    def __init__(self, node: str, labels: Mapping[str, Mapping[str, str]]) -> None:
        self.node = node
        self.specs: dict[str, Object] = {}
        """Of pods that are not of one container with the ports NAMED."""
        self.addresses = {name: (f"10.99.0.{n}", f"fd99::{n:x}") for n, name in enumerate(sorted(labels), start=10)}
        self.labels = labels

    def objects(self) -> tuple[list[Object], list[Object]]:
        """Return the pods and namespaces as the Kubernetes API has them."""
        pods = []
        for name, labels in self.labels.items():
            namespace, _, short = name.partition("/")
            pods.append(
                {
                    "metadata": {"name": short, "namespace": namespace, "labels": labels},
                    "spec": self.specs.get(name, {"containers": [{"ports": NAMED}]}),
                    "status": {"phase": "Running", "podIPs": [{"ip": text} for text in self.addresses[name]]},
                }
            )
        spaces = sorted({name.partition("/")[0] for name in self.labels})
        named = [{"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}} for name in spaces]
        return pods, named

    def enforce(self, *policies: Object) -> None:
        """Give the node the rules of these policies, in place of those before."""
        pods, namespaces = self.objects()
        text = ruleset(pods, namespaces, policies)
        command = ["ip", "netns", "exec", self.node, "nft", "-f", "-"]
        subprocess.run(command, input=text, check=True, text=True, capture_output=True)

    def serve_at(self, address: str, target: str) -> None:
        """Let a pod be called at an address that is nobody's, as kube-proxy does for a Service."""
        pod = self.addresses[target][0]
        text = f"""
            add table ip service
            add chain ip service before {{ type nat hook prerouting priority dstnat; }}
            add chain ip service after {{ type nat hook postrouting priority srcnat; }}
            add rule ip service before ip daddr {address} dnat to {pod}
            add rule ip service after ip saddr {pod} ip daddr {pod} masquerade
        """
        command = ["ip", "netns", "exec", self.node, "nft", "-f", "-"]
        subprocess.run(command, input=text, check=True, text=True, capture_output=True)
        self.addresses[f"{target}-service"] = (address, "")

    def reached(self, source: str, target: str, *, port: int = 80, protocol: str = "TCP", version: int = 4) -> bool:
        """Return whether a call of `target` is answered; `source` may be the node."""
        address = self.addresses[target][0 if version == 4 else 1]
        return inside(self.netns(source), lambda: (ask_tcp if protocol == "TCP" else ask_udp)(address, port))

    def callers(self, target: str, *, port: int = 80, protocol: str = "TCP", version: int = 4) -> set[str]:
        """Return which pods reach `target`, itself too."""
        return {
            name for name in self.labels if self.reached(name, target, port=port, protocol=protocol, version=version)
        }

    def netns(self, name: str) -> str:
        return self.node if name == "node" else f"{self.node}-{name.replace('/', '-')}"


def inside[T](netns: str, work: Callable[[], T]) -> T:
    """Return what `work` does in a thread of that network namespace; sockets made there stay in it."""

    def run() -> T:
        with Path(f"/run/netns/{netns}").open() as entry:
            os.setns(entry.fileno(), os.CLONE_NEWNET)
        return work()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(run).result()


def ask_tcp(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=TIMEOUT, source_address=("", next(_ports))).close()
    except ConnectionRefusedError:
        return False
    return True


def ask_udp(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.settimeout(TIMEOUT)
        asking.bind(("", next(_ports)))
        asking.connect((address, port))
        try:
            asking.send(b"?")
            return asking.recv(1) == b"!"
        except ConnectionRefusedError:
            return False


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def running(labels: Mapping[str, Mapping[str, str]]) -> Iterator[Lab]:
    """Make the namespaces; every pod listens on PORTS. Nothing is left."""
    lab = Lab(f"lab{os.getpid()}", labels)
    with ExitStack() as stack:
        add(stack, lab.node)
        # A kernel sends one "port unreachable" a second to the same host, and datagrams are not repeated.
        limits = ("net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0")
        forward = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        ip("netns", "exec", lab.node, "sysctl", "-qw", *forward, *limits)
        for number, name in enumerate(sorted(labels)):
            add(stack, lab.netns(name))
            wire(lab.node, lab.netns(name), f"pod{number}", lab.addresses[name])
            serve(stack, lab.netns(name))
        yield lab


def add(stack: ExitStack, netns: str) -> None:
    ip("netns", "add", netns)
    stack.callback(ip, "netns", "del", netns)
    ip("-n", netns, "link", "set", "lo", "up")


def wire(node: str, netns: str, device: str, addresses: Iterable[str]) -> None:
    """Give a pod its addresses behind a link of its own, as plugins that route do."""
    ip("-n", node, "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", netns)
    ip("-n", node, "link", "set", device, "up")
    ip("-n", netns, "link", "set", "eth0", "up")
    for address, gateway in zip(addresses, ("169.254.1.1", "fd98::1"), strict=True):
        family, length = ("-4", 32) if "." in address else ("-6", 128)
        options = ("nodad",) if family == "-6" else ()
        ip("-n", netns, family, "address", "add", f"{address}/{length}", "dev", "eth0", *options)
        ip("-n", node, family, "address", "add", f"{gateway}/{length}", "dev", device, *options)
        ip("-n", node, family, "route", "add", f"{address}/{length}", "dev", device)
        ip("-n", netns, family, "route", "add", f"{gateway}/{length}", "dev", "eth0")
        ip("-n", netns, family, "route", "add", "default", "via", gateway, "dev", "eth0")


def serve(stack: ExitStack, netns: str) -> None:
    """Listen in a pod, in a thread."""

    def listen() -> list[socket.socket]:
        listening = [socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) for port in PORTS]
        answering = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        answering.bind(("::", PORTS[0]))
        return [*listening, answering]

    end, ended = socket.socketpair()
    sockets = [*inside(netns, listen), ended]
    for item in (*sockets, end):
        stack.enter_context(item)
    executor = stack.enter_context(ThreadPoolExecutor(1))
    stack.callback(end.close)
    executor.submit(answer, sockets)


def answer(sockets: Iterable[socket.socket]) -> None:
    """Accept connections and answer datagrams, until the last of the sockets has no other end."""
    *listening, answering, ended = sockets
    while ended not in (ready := select.select([*listening, answering, ended], [], [])[0]):
        for item in ready:
            if item is answering:
                _, sender = item.recvfrom(1)
                item.sendto(b"!", sender)
            else:
                item.accept()[0].close()

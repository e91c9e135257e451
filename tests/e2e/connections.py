"""Packets between pods: who gets a connection to whom, from inside of their containers.

`tools/netpol` enforces the policies in the project's own cluster; in another one its network plugin does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pallas_contract import __version__
from pallas_gen.plan import build_plan
from pallas_gen.project import load

from .release import Release, call, namespace

CONNECT = """
import errno, select, socket, time
def begin(host):
    connection = socket.socket()
    try:
        address = socket.getaddrinfo(host, 8080, socket.AF_INET, socket.SOCK_STREAM)[0][4]
        connection.setblocking(False)
        if connection.connect_ex(address) not in (0, errno.EINPROGRESS):
            connection.close()
    except OSError:
        connection.close()
    return connection
connections = [begin(host) for host in {hosts}]
waiting = {{connection for connection in connections if connection.fileno() >= 0}}
connected = set()
deadline = time.monotonic() + 3
while waiting and (remaining := deadline - time.monotonic()) > 0:
    for connection in select.select([], waiting, [], remaining)[1]:
        waiting.remove(connection)
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
            connected.add(connection)
print([int(connection in connected) for connection in connections])
"""
STRANGER = {
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 1,
    "containers": [
        {
            "name": "stranger",
            "image": f"pallas-agent:{__version__}",
            "args": ["-c", "import socket; s = socket.create_server(('', 8080))\nwhile True: s.accept()[0].close()"],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
    "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
}
Edges = set[tuple[str, str]]


def declared(fleet: Release) -> Edges:
    """Return (caller, called) as agents.yaml has it; the registry calls each agent."""
    project = load.load(fleet.config, {})
    plan = build_plan(project.fleet, project.config, project.project)
    return {*plan.edges, *(("registry", host) for host in plan.workload("registry").calls)}


def addresses(fleet: Release) -> dict[str, str]:
    """Return the address of each pod by the name of its workload."""
    pods = fleet.pods().values()
    return {pod["metadata"]["labels"]["app.kubernetes.io/name"]: pod["status"]["podIP"] for pod in pods}


def connects(space: str, pod: str, hosts: list[str]) -> list[bool]:
    """Return for each host whether a process in the pod gets a connection to it."""
    code = CONNECT.format(hosts=hosts)
    answer = json.loads(call("kubectl", "-n", space, "exec", pod, "--", "python", "-I", "-c", code).stdout)
    return [connected == 1 for connected in answer]


def edges(fleet: Release, hosts: Mapping[str, str]) -> Edges:
    """Return which members reach which other one, `hosts` saying how they call it."""

    def called(caller: str) -> Edges:
        others = [name for name in hosts if name != caller]
        answers = connects(fleet.namespace, f"deployment/{caller}", [hosts[name] for name in others])
        return {(caller, name) for name, reached in zip(others, answers, strict=True) if reached}

    with ThreadPoolExecutor(4) as executor:
        return set().union(*executor.map(called, hosts))


@contextmanager
def strangers(fleet: Release) -> Iterator[dict[str, str]]:
    """Run a pod of somebody else in the fleet's namespace and one in another; their addresses by namespace."""
    path = fleet.config.with_name("stranger.json")
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": STRANGER}))
    with namespace(f"{fleet.namespace}-elsewhere") as elsewhere:
        spaces = (fleet.namespace, elsewhere)
        try:
            for space in spaces:
                call("kubectl", "-n", space, "apply", "-f", path)
            for space in spaces:
                call("kubectl", "-n", space, "wait", "--for=condition=Ready", "pod/stranger", "--timeout=60s")
            field = ("-o", "jsonpath={.status.podIP}")
            yield {space: call("kubectl", "-n", space, "get", "pod", "stranger", *field).stdout for space in spaces}
        finally:
            fleet.kubectl("delete", "pod", "stranger", "--ignore-not-found", "--grace-period=1")

"""The chart of a large fleet in a real control plane with simulated nodes: time, sizes, and what DNS answers.

etcd, API server, controller manager, scheduler and CoreDNS are those of tools/cluster; kwok pretends to be the nodes,
whose pods are ready at once. So this is what the fleet costs Kubernetes, not what the agents cost the nodes.
Controllers and scheduler may ask as fast as they can (NO_BRAKE): else their own brake is what is measured.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import generator
from benchmarks.method import servers
from benchmarks.method.load import Missing, need
from benchmarks.method.report import Figure
from benchmarks.method.side_by_side import Effort, spread

BIN = Path(os.environ.get("CLUSTER_DIR", Path.home() / ".cache/pallas-cluster")) / "bin"
STAGES = BIN.parent / "kwok-stages.yaml"
PODS_PER_NODE = 110
"""The kubelet's default."""
NO_BRAKE = ["--kube-api-qps=1000", "--kube-api-burst=2000"]
"""Instead of 20 requests a second of each controller and 50 of the scheduler."""
DOMAIN = "agents.fleet.svc.cluster.local"


def measure(effort: Effort) -> Iterator[Figure]:
    size = 40 if effort.quick else 1000
    need("etcd", "kubectl", "helm", "openssl")
    for command in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns", "kwok"):
        if not shutil.which(command, path=str(BIN)):
            raise Missing(f"{command} in {BIN}: tools/bench builds it")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        project = generator.fleet(folder, size)
        subprocess.run(
            [*generator.GENERATE, "helm", "--output", "../chart"], cwd=project, check=True, capture_output=True
        )
        cluster = control_plane(stack, folder)
        for number in range(-(-(size + 1) // PODS_PER_NODE)):
            cluster.apply(node(number))
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}})
        yield from _figures(cluster, folder, size)


def _figures(cluster: Cluster, folder: Path, size: int) -> Iterator[Figure]:
    begun = time.perf_counter()
    install = ["helm", "install", "fleet", "chart", "--namespace", "fleet", "--timeout", "10m"]
    subprocess.run(install, cwd=folder, env=cluster.env, check=True, capture_output=True)
    yield _one(f"{size:,} agents: helm install", time.perf_counter() - begun, "s")
    servers.until(lambda: cluster.ready() > size, pause=5, patience=600)
    yield _one(f"{size:,} agents: until every pod is ready", time.perf_counter() - begun, "s")
    secret = next(item for item in cluster.items("/api/v1/namespaces/fleet/secrets") if "release" in item["data"])
    yield _one(
        "Helm's own record of the release, of at most 1,049", len(secret["data"]["release"]) * 3 / 4 / 1000, "kB"
    )
    yield _one("etcd, all objects", cluster.etcd_bytes() / 1e6, "MB")
    yield _one("memory of the API server", servers.resident(cluster.api) / 1e6, "MB")
    slices = cluster.items("/apis/discovery.k8s.io/v1/namespaces/fleet/endpointslices")
    own = [item for item in slices if item["metadata"]["labels"]["kubernetes.io/service-name"] == "agents"]
    yield _one("EndpointSlices behind the registry's name", len(own), "")
    servers.until(lambda: _answer(cluster.dns)[0] >= size, pause=1, patience=300)
    records, size_of_answer, truncated = _answer(cluster.dns)
    yield _one(
        f"DNS answer with {records:,} addresses, {'truncated' if truncated else 'whole'} over UDP",
        size_of_answer,
        "bytes",
    )


def _one(what: str, value: float, unit: str) -> Figure:
    return Figure(what, spread([value]), unit=unit)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A control plane: environment for its clients, the API server's process id, ports of etcd and DNS."""

    env: dict[str, str]
    api: int
    etcd: int
    dns: int

    def apply(self, thing: dict[str, Any]) -> None:
        command = ["kubectl", "apply", "--filename", "-"]
        subprocess.run(command, env=self.env, input=json.dumps(thing), text=True, check=True, capture_output=True)

    def items(self, path: str) -> list[dict[str, Any]]:
        said = subprocess.run(["kubectl", "get", "--raw", path], env=self.env, check=True, capture_output=True)
        return list(json.loads(said.stdout)["items"])

    def ready(self) -> int:
        """Deployments whose pod is ready."""
        found = self.items("/apis/apps/v1/namespaces/fleet/deployments")
        return sum(item["status"].get("readyReplicas", 0) for item in found)

    def etcd_bytes(self) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.etcd}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith("etcd_mvcc_db_total_size_in_bytes ")).split()[1])


def control_plane(stack: ExitStack, folder: Path) -> Cluster:
    """Everything but nodes, on ports of its own; it ends with `stack`."""
    etcd, peer, api, dns = (servers.free_port() for _ in range(4))
    store, peers = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
    config = folder / "kubeconfig"
    config.write_text(json.dumps(kubeconfig(api)))
    (folder / "tokens.csv").write_text('bench,admin,1,"system:masters"\n')
    subprocess.run(["openssl", "genrsa", "-out", "sa.key", "2048"], cwd=folder, check=True, capture_output=True)
    corefile = f".:{dns} {{\n bind 127.0.0.1\n kubernetes cluster.local {{\n  kubeconfig {config} bench\n }}\n}}\n"
    (folder / "Corefile").write_text(corefile)
    env = {**os.environ, "KUBECONFIG": str(config)}

    def start(*command: str) -> int:
        path = shutil.which(command[0], path=f"{BIN}:{os.environ['PATH']}") or command[0]
        return stack.enter_context(servers.process([path, *command[1:]], folder, env, core=None)).pid

    urls = ["--listen-client-urls", store, "--advertise-client-urls", store, "--listen-peer-urls", peers]
    own = ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
    start("etcd", "--data-dir", "etcd", *urls, *own)
    issuer = ["--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=sa.key"]
    issuer += ["--service-account-signing-key-file=sa.key", "--service-cluster-ip-range=10.96.0.0/16"]
    server = [f"--etcd-servers={store}", f"--secure-port={api}", "--bind-address=127.0.0.1", "--cert-dir=certificates"]
    server += ["--token-auth-file=tokens.csv", "--authorization-mode=RBAC", "--endpoint-reconciler-type=none"]
    pid = start("kube-apiserver", *server, *issuer)
    ready = ["kubectl", "get", "--raw", "/readyz"]
    servers.until(lambda: subprocess.run(ready, env=env, check=False, capture_output=True).returncode == 0, pause=0.5)
    client = [f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0"]
    start(
        "kube-controller-manager",
        *client,
        "--service-account-private-key-file=sa.key",
        "--use-service-account-credentials",
        *NO_BRAKE,
    )
    start("kube-scheduler", *client, *NO_BRAKE)
    start("kwok", f"--kubeconfig={config}", f"--config={STAGES}", "--manage-all-nodes=true")
    start("coredns", "-conf", "Corefile")
    return Cluster(env, pid, etcd, dns)


def kubeconfig(port: int) -> dict[str, Any]:
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }


def node(number: int) -> dict[str, Any]:
    """A node of 16 cores and 64 GiB."""
    has = {"cpu": "16", "memory": "64Gi", "pods": str(PODS_PER_NODE), "ephemeral-storage": "200Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"simulated-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"podCIDR": f"10.200.{number}.0/24", "podCIDRs": [f"10.200.{number}.0/24"]},
        "status": {"allocatable": has, "capacity": has, "phase": "Running"},
    }


def _answer(port: int) -> tuple[int, int, bool]:
    """Number of addresses and bytes of the answer for the fleet's headless Service, and whether UDP truncates it."""
    name = b"".join(bytes([len(label)]) + label.encode() for label in DOMAIN.split(".")) + b"\0"
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1"
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.settimeout(10)
        udp.sendto(query, ("127.0.0.1", port))
        short = udp.recv(65535)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as tcp, tcp.makefile("rb") as stream:
        tcp.sendall(len(query).to_bytes(2) + query)
        whole = stream.read(int.from_bytes(stream.read(2)))
    return int.from_bytes(whole[6:8]), len(whole), bool(short[2] & 2)

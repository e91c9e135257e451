"""A chart on disk, rendered by the real helm -> the programs it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from pallas_contract import names
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import LISTENING, Plan, Workload
from pallas_gen.targets.helm import FILE, chart, render, template
from pallas_gen.targets.observed import ObservedWorkload, Tree, mebibytes, shared_env


def recorded(path: Path) -> dict[str, str]:
    """Return the texts of the project that the values at `path` deliver, by path; empty where they cannot be read."""
    try:
        project = yaml_out.load(path.read_bytes())["project"]
        texts = {**project["config"], **project["code"], **project.get("lock", {})}
        return {str(file): str(text) for file, text in texts.items()}
    except (yaml.YAMLError, ValueError, RecursionError, KeyError, TypeError):  # ValueError: a date that there is not
        return {}


def objects(folder: Path, plan: Plan, *, values_only: bool) -> list[dict[str, Any]]:
    """Return the objects of the chart in `folder`, or of the kit's own with the values in it.

    Raises:
        Unreadable: there is no helm, or it refuses the chart.
    """
    secrets = render.secret_names(plan).values()
    if values_only:
        return template.render(chart.chart_dir(), secrets, values=folder / FILE)
    return template.render(folder, secrets)


def workloads(manifests: Sequence[Tree], plan: Plan) -> dict[str, ObservedWorkload]:
    """Return every Deployment of rendered manifests by host, without what a chart's test adds."""
    deployments = {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == "Deployment"}
    policies = {
        manifest["metadata"]["name"]: manifest["spec"] for manifest in manifests if manifest["kind"] == "NetworkPolicy"
    }
    planned = {workload.host: workload for workload in plan.workloads}
    # a connection exists where the caller's policy lets it out and the called one's lets it in
    let_in = {(caller, host) for host in deployments for caller in _callers(policies.get(host, {}), deployments)}
    let_out = {(host, called) for host in deployments for called in _called(policies.get(host, {}), deployments)}
    edges = let_in & let_out
    files = {name: str(PurePosixPath(file)) for file, name in render.secret_names(plan).items()}
    observed = {}
    for host, deployment in deployments.items():
        listens = deployment["metadata"]["labels"]["app.kubernetes.io/component"] in LISTENING
        observed[host] = _workload(
            deployment,
            planned.get(host),
            files=files,
            peers={end for edge in edges if host in edge for end in edge} - {host},
            callers={caller for caller, called in edges if called == host and listens},
            policy=policies.get(host, {}),
        )
    return observed


def _workload(
    deployment: Tree,
    planned: Workload | None,
    *,
    files: Mapping[str, str],
    peers: set[str],
    callers: set[str],
    policy: Tree,
) -> ObservedWorkload:
    pod = deployment["spec"]["template"]["spec"]
    # exactly one: a sidecar that somebody added is a difference
    (main,) = pod["containers"]
    waits = [container["args"] for container in pod.get("initContainers", ()) if container["name"] == "wait"]
    limits = main["resources"]["limits"]
    return ObservedWorkload(
        image=main["image"],
        command=tuple(map(_literal, (*main.get("command", ()), *(main.get("args") or ())))),
        env=shared_env(_env(deployment["metadata"], main)),
        port=main["ports"][0]["containerPort"],
        probe=_probe(main["readinessProbe"], planned),
        order=tuple(sorted(_host(url) for args in waits for url in args if "://" in url)),
        secrets=tuple(sorted(_secrets(pod, files))),
        limits=(_cores(str(limits["cpu"])), mebibytes(limits["memory"])),
        peers=tuple(sorted(peers)),
        keeps=tuple(mount["mountPath"] for mount in main["volumeMounts"] if mount["name"] == "state"),
        callers=tuple(sorted(callers)),
        collector=_collector(policy, planned),
    )


def _literal(text: str) -> str:
    """Undo the doubling by which Kubernetes is kept from expanding `$(NAME)`."""
    return text.replace("$$", "$")


def _env(metadata: Tree, container: Tree) -> dict[str, str]:
    env = {variable["name"]: _literal(variable.get("value", "")) for variable in container.get("env", ())}
    if names.ENV_ALLOWED_HOSTS in env:
        address = f"{metadata['name']}.{metadata['namespace']}"
        env[names.ENV_ALLOWED_HOSTS] = _without_cluster_names(address, env[names.ENV_ALLOWED_HOSTS])
    return env


def _without_cluster_names(address: str, patterns: str) -> str:
    """Return the Host headers without those that a workload has only in a cluster, with its namespace in them."""
    cluster = (f"{address}.svc.", f"{address}.svc:", f"{address}:")
    return ",".join(pattern for pattern in patterns.split(",") if not f"{pattern}:".startswith(cluster))


def _probe(probe: Tree, planned: Workload | None) -> str:
    """Return the URL that the plan asks, where the kubelet asks for the same path; else what the kubelet asks.

    Of an image that is not ours it is empty where the kubelet does as planned: compose has no probe then.
    """
    if "exec" in probe:
        return _literal(str(probe["exec"]["command"][-1]))
    foreign = planned and planned.foreign
    if "httpGet" not in probe:
        port = probe["tcpSocket"]["port"]
        return "" if planned and foreign and port == planned.port else str(port)
    path = str(probe["httpGet"]["path"])
    same = planned and planned.health_paths and planned.health_paths[1] == path
    return path if not planned or not same else "" if foreign else planned.health_url


def _secrets(pod: Tree, files: Mapping[str, str]) -> Iterator[str]:
    for volume in pod["volumes"]:
        if volume["name"] == "secrets":
            for source in volume["projected"]["sources"]:
                for entry in source["secret"]["items"]:
                    yield f"{entry['path']}: {files.get(entry['key'], entry['key'])}"


def _collector(policy: Tree, planned: Workload | None) -> str:
    """Return the collector's address in the plan if its port alone is open, else the ports."""
    ports = _ports_to_others(policy)
    collector = planned.collector if planned else None
    if collector and ports == [collector.port]:
        return f"{collector.host}:{collector.port}"
    return ",".join(map(str, ports))


def _callers(policy: Tree, deployments: Tree) -> Iterator[str]:
    for rule in policy.get("ingress", ()):
        yield from _selected(rule.get("from", ()), deployments)


def _called(policy: Tree, deployments: Tree) -> Iterator[str]:
    for rule in policy.get("egress", ()):
        yield from _selected(rule.get("to", ()), deployments)


def _ports_to_others(policy: Tree) -> list[int]:
    """Return the ports that are open to more than pods of this namespace."""
    rules = [rule for rule in policy.get("egress", ()) if not all("podSelector" in peer for peer in rule.get("to", ()))]
    # all names are asked for at port 53
    return sorted({port["port"] for rule in rules for port in rule.get("ports", ())} - {53})


def _selected(peers: Sequence[Tree], deployments: Tree) -> Iterator[str]:
    """Yield the workloads that the pod selectors of a rule choose."""
    for peer in peers:
        labels = peer.get("podSelector", {}).get("matchLabels", {})
        for host, deployment in deployments.items():
            if labels and labels.items() <= deployment["spec"]["template"]["metadata"]["labels"].items():
                yield host


def _host(url: str) -> str:
    return url.split("/")[2].partition(":")[0]


def _cores(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)

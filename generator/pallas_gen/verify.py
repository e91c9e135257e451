"""Are compose file and chart the plan? What was written is read back and compared with it, workload by workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import PurePosixPath
from typing import Any

from pallas_contract import names
from pallas_contract.problems import Problem, Where
from pallas_gen.plan import Collector, Plan, Workload
from pallas_gen.targets.compose import render as compose
from pallas_gen.targets.helm import render as helm

Tree = Mapping[str, Any]
_OWN = frozenset({names.ENV_REPLICA_DOMAIN, names.ENV_LISTEN_ON})
"""What one target alone has to say: the chart knows the namespace, and a network of compose carries both directions."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One workload as a target has it, in words that all targets share."""

    image: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    port: int
    probe: str
    order: tuple[str, ...]
    secrets: tuple[str, ...]
    """`name in /run/secrets: where its content is`, a file for compose, the name among the chart's values."""
    limits: tuple[float, int]
    """Cores and MiB."""
    peers: tuple[str, ...]
    """Hosts with a way between them and this one, in either direction; empty where nothing separates them."""
    keeps: tuple[str, ...]
    """Folders that outlive a restart."""
    callers: tuple[str, ...]
    """Those of them that reach an agent; empty for what is no agent."""
    collector: str = ""
    """Its way to the collector of traces: a network, or the port that is open."""


def of_plan(plan: Plan, item: Workload, *, http: bool) -> Seen:
    """What must be found; `http` where a probe asks a path instead of a URL, if there is one."""
    edges = {*plan.edges, *((names.REGISTRY, host) for host in plan.workload(names.REGISTRY).calls)}
    peers = {host for edge in edges if item.host in edge for host in edge} - {item.host}
    callers = {caller for caller, called in edges if called == item.host and item.kind == "agent"}
    files = {secret.file: str(PurePosixPath(secret.file)) for secret in item.secrets}
    contents = helm.secret_names(plan) if http else files
    return Seen(
        image=item.image,
        command=item.command,
        env=tuple(sorted(item.env.items())),
        port=names.CONTAINER_PORT,
        probe=item.health_paths[1] if http and item.health_paths else item.health_url,
        order=tuple(sorted(item.waits_for)),
        secrets=tuple(sorted(f"{secret.target}: {contents[secret.file]}" for secret in item.secrets)),
        limits=(item.resources.cpus, _mebibytes(item.resources.memory)),
        peers=tuple(sorted(peers)) if plan.isolated else (),
        keeps=(names.STATE_DIR,) if item.state else (),
        callers=tuple(sorted(callers)) if plan.isolated else (),
        collector=_way_to(item.collector, http=http) if plan.isolated and item.collector else "",
    )


def _way_to(collector: Collector, *, http: bool) -> str:
    if http:
        return str(collector.port)
    return compose.TELEMETRY if collector.beside else "outside"


def in_compose(document: Tree) -> dict[str, Seen]:
    """Every service of a compose file."""
    services: Tree = document["services"]
    on = {host: set(service.get("networks", ())) for host, service in services.items()}
    internal = {name for name, network in document.get("networks", {}).items() if network.get("internal")}
    files = {name: secret["file"].replace("$$", "$") for name, secret in document.get("secrets", {}).items()}
    return {host: _service(host, service, on, internal, files) for host, service in services.items()}


def _service(host: str, service: Tree, on: Mapping[str, set[str]], internal: set[str], files: Tree) -> Seen:
    limits = service["deploy"]["resources"]["limits"]
    env = {key: value.replace("$$", "$") for key, value in service["environment"].items()}
    listens = env.get(names.ENV_LISTEN_ON, "")
    return Seen(
        image=service["image"].replace("$$", "$"),
        command=tuple(part.replace("$$", "$") for part in service["command"]),
        env=_common(env),
        port=int(env[names.ENV_BIND].rpartition(":")[2]),
        probe=service["healthcheck"]["test"][-1],
        order=tuple(sorted(service.get("depends_on", ()))),
        secrets=tuple(sorted(f"{each['target']}: {files.get(each['source'])}" for each in service.get("secrets", ()))),
        limits=(float(limits["cpus"]), _mebibytes(limits["memory"])),
        peers=tuple(sorted(other for other in on if other != host and on[other] & on[host] - {compose.TELEMETRY})),
        keeps=tuple(each["target"] for each in service.get("volumes", ()) if each["type"] == "volume"),
        callers=tuple(sorted(name.removeprefix("from.") for name in listens.split(",") if name)),
        collector=_found_way(env, on[host], internal),
    )


def _found_way(env: Mapping[str, str], joined: set[str], internal: set[str]) -> str:
    if compose.TELEMETRY in joined:
        return compose.TELEMETRY
    return "outside" if names.ENV_OTLP_ENDPOINT in env and joined - internal else ""


def in_manifests(objects: Sequence[Tree]) -> dict[str, Seen]:
    """Every Deployment of rendered manifests, without what a chart's test adds."""
    deployments = {item["metadata"]["name"]: item for item in objects if item["kind"] == "Deployment"}
    policies = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "NetworkPolicy"}
    ways = {(caller, host) for host in deployments for caller in _callers(policies.get(host, {}), deployments)}
    ways &= {(host, called) for host in deployments for called in _called(policies.get(host, {}), deployments)}
    out = {}
    for host, item in deployments.items():
        peers = {end for way in ways if host in way for end in way} - {host}
        is_agent = item["metadata"]["labels"]["app.kubernetes.io/component"] == "agent"
        callers = {caller for caller, called in ways if called == host and is_agent}
        at = f"{host}.{item['metadata']['namespace']}"
        seen = _deployment(at, item["spec"]["template"]["spec"], peers, callers)
        out[host] = replace(seen, collector=",".join(map(str, _ports_to_others(policies.get(host, {})))))
    return out


def _deployment(at: str, pod: Tree, peers: set[str], callers: set[str]) -> Seen:
    (main,) = pod["containers"]
    waits = [container["args"] for container in pod.get("initContainers", ()) if container["name"] == "wait"]
    env = {item["name"]: item.get("value", "").replace("$$", "$") for item in main["env"]}
    if names.ENV_ALLOWED_HOSTS in env:
        env[names.ENV_ALLOWED_HOSTS] = _same_everywhere(at, env[names.ENV_ALLOWED_HOSTS])
    volume = [item for item in pod["volumes"] if item["name"] == "secrets"]
    sources = [source["secret"] for item in volume for source in item["projected"]["sources"]]
    probe, limits = main["readinessProbe"], main["resources"]["limits"]
    return Seen(
        image=main["image"],
        command=tuple(part.replace("$$", "$") for part in main["args"]),
        env=_common(env),
        port=main["ports"][0]["containerPort"],
        probe=probe["httpGet"]["path"] if "httpGet" in probe else probe["exec"]["command"][-1],
        order=tuple(sorted(_host(url) for args in waits for url in args if url.startswith("http"))),
        secrets=tuple(sorted(f"{item['path']}: {item['key']}" for secret in sources for item in secret["items"])),
        limits=(_cores(str(limits["cpu"])), _mebibytes(limits["memory"])),
        peers=tuple(sorted(peers)),
        keeps=tuple(mount["mountPath"] for mount in main["volumeMounts"] if mount["name"] == "state"),
        callers=tuple(sorted(callers)),
    )


def _common(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, value) for key, value in env.items() if key not in _OWN))


def _same_everywhere(at: str, patterns: str) -> str:
    """The Host headers without the names that a workload has only in a cluster: `at`, its own with the namespace's."""
    own = (f"{at}.svc.", f"{at}.svc:", f"{at}:")
    kept = (pattern for pattern in patterns.split(",") if not f"{pattern}:".startswith(own))
    return ",".join(kept)


def _callers(policy: Tree, deployments: Tree) -> Iterator[str]:
    for rule in policy.get("ingress", ()):
        yield from _named(rule.get("from", ()), deployments)


def _called(policy: Tree, deployments: Tree) -> Iterator[str]:
    for rule in policy.get("egress", ()):
        yield from _named(rule.get("to", ()), deployments)


def _ports_to_others(policy: Tree) -> list[int]:
    """The ports that are open to more than pods of this namespace; all names are asked for at port 53."""
    rules = [rule for rule in policy.get("egress", ()) if not all("podSelector" in peer for peer in rule.get("to", ()))]
    return sorted({port["port"] for rule in rules for port in rule.get("ports", ())} - {53})


def _named(peers: Sequence[Tree], deployments: Tree) -> Iterator[str]:
    """The workloads that the pod selectors of a rule choose."""
    for peer in peers:
        labels = peer.get("podSelector", {}).get("matchLabels", {})
        for host, item in deployments.items():
            if labels and labels.items() <= item["spec"]["template"]["metadata"]["labels"].items():
                yield host


def _host(url: str) -> str:
    return url.split("/")[2].partition(":")[0]


def _cores(text: str) -> float:
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def _mebibytes(text: str) -> int:
    text = text.removesuffix("i")
    return int(text[:-1]) * (1024 if text.endswith("G") else 1)


def differences(plan: Plan, found: Mapping[str, Seen], place: str, *, http: bool) -> Iterator[Problem]:
    """Everything in which what was found at `place` is not the plan."""
    hosts = {item.host for item in plan.workloads}
    for host in sorted(hosts ^ found.keys()):
        yield Problem(Where(place, field=host), "is not in the plan" if host in found else "is missing")
    for item in plan.workloads:
        if item.host in found:
            wanted, seen = of_plan(plan, item, http=http), found[item.host]
            for field in fields(Seen):
                a, b = getattr(wanted, field.name), getattr(seen, field.name)
                if a != b:
                    yield Problem(Where(place, field=f"{item.host}.{field.name}"), f"is {b!r}, and {a!r} in the plan")

"""Plan -> a Helm chart: the static one, byte for byte, and the values that make it this fleet. Kubernetes 1.30+."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.base import Resources as Limits
from pallas_contract.problems import Problem, Where
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import GRACE_SECONDS, Plan, Workload
from pallas_gen.project import contents
from pallas_gen.project.configmaps import Delivery
from pallas_gen.targets.helm import FILE
from pallas_gen.targets.helm.edge import rules
from pallas_gen.targets.helm.edge.values import Gateway
from pallas_gen.targets.helm.ip_blocks import ip_block
from pallas_gen.targets.helm.values import Project, Secret, Values
from pallas_gen.targets.helm.values_workload import (
    Agent,
    Companion,
    HealthPaths,
    Image,
    Images,
    Pod,
    Registry,
    Resources,
    State,
)

Files = dict[PurePosixPath, str]

_LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_TAKEN = frozenset({"pallas-deny", "pallas-test"})
"""Names of the chart's own network policies."""
_EDGE = "pallas-edge-"
"""With this the names of its routes for an agentgateway begin."""
_OURS = ("app.kubernetes.io/", "helm.sh/")


def render(plan: Plan, delivery: Delivery, chart: Mapping[PurePosixPath, str]) -> Files:
    """Render the files of an installable chart: copies of `chart`, and complete values."""
    copies = {path: text for path, text in chart.items() if path != FILE}
    return copies | render_values(plan, delivery, complete=True)


def render_values(plan: Plan, delivery: Delivery, *, complete: bool = False) -> Files:
    """Render the values alone, for the published chart; `complete` spells out its defaults as well."""
    overlay = values(plan, delivery).model_dump(mode="json", by_alias=True, exclude_unset=True)
    document = _over(defaults(), overlay) if complete else overlay
    return {FILE: yaml_out.dump(document, source=plan.source, override="a values file of your own", literal=True)}


def defaults() -> dict[str, Any]:
    """Return the chart's default values."""
    # the registry says nothing of its own: `defaults` is for it too; and without a key of it there is no gateway
    optional: dict[str, Any] = {"registry": {}, "gateway": {}}
    return Values().model_dump(mode="json", by_alias=True, exclude=set(optional)) | optional


def problems(plan: Plan) -> Iterator[Problem]:
    """Yield everything that the plan says and this target cannot do."""
    for workload in plan.workloads:
        sections = {"agent": f"agents.{workload.name}", "service": f"services.{workload.name}"}
        section = sections.get(workload.kind, workload.kind)
        if workload.host in _TAKEN or workload.host.startswith((names.PODS_PREFIX, _EDGE)):
            yield Problem(
                Where(plan.source, field=section),
                f"the chart has a {workload.host} of its own",
                "rename it",
                code=Code.RESERVED_NAME,
            )
        for key, value in workload.labels.items():
            if not _LABEL_KEY.fullmatch(key) or not _LABEL.fullmatch(value) or key.startswith(_OURS):
                where = Where(plan.source, field=f"{section}.labels.{key}")
                hint = "63 letters, digits, `.`, `_` or `-`; app.kubernetes.io/ is taken by the chart"
                yield Problem(where, f"{key}={value!r} cannot be a Kubernetes label", hint, code=Code.KUBERNETES_LABEL)
        if "pids" in workload.resources.model_fields_set:
            where = Where(plan.source, field=f"{section}.resources.pids")
            hint = "set podPidsLimit in the kubelet's configuration"
            yield Problem(
                where, "a pod has no limit of its own for processes", hint, "warning", code=Code.PROCESS_LIMIT
            )


def next_steps(plan: Plan, chart: str, project: str, build: str) -> Iterator[str]:
    """Yield the command that brings the images to the nodes, and the lines of the one that installs the chart.

    `build` is the command that builds the fleet's images, empty where it has none to build.
    """
    if build:
        yield f"next: {build} --push    # or --load kind, minikube, k3d: the nodes need the images; then"
    # a release has at most 53 characters
    name = re.sub(r"[^a-z0-9-]+", "-", plan.name.lower())[:50].strip("-")
    name = name or f"fleet-{hashlib.sha256(plan.name.encode()).hexdigest()[:6]}"
    lines = [f"helm upgrade --install {name} {shlex.quote(chart)} --namespace {name} --create-namespace"]
    for file, secret in secret_names(plan).items():
        path = file if file.startswith("/") or project == "." else f"{project}/{file}"
        # the shell takes the line apart, and then helm what it is told at each comma
        escaped = re.sub(r"[\\,{}]", r"\\\g<0>", path)
        lines.append(f"--set-file {shlex.quote(f'secrets.{secret}.content={escaped}')}")
    yield f"{'' if build else 'next: '}{' \\\n  '.join(lines)}"


def values(plan: Plan, delivery: Delivery) -> Values:
    """Return the values that make the chart this fleet. Secrets stand in them by name, never by content."""
    sources = secret_names(plan)
    by_kind: dict[str, list[Workload]] = {"agent": [], "service": [], "registry": [], "gateway": []}
    for workload in plan.workloads:
        by_kind[workload.kind].append(workload)
    counts = Counter(workload.image for workload in by_kind["agent"])
    agent_image = min(counts, key=lambda name: (-counts[name], name))
    # the fleet file says it for all agents at once
    baked = not any(workload.needs_code for workload in by_kind["agent"])
    project: dict[str, Any] = {"config": delivery.config, "code": delivery.code}
    if delivery.lock:
        project["lock"] = delivery.lock

    prints = contents.fingerprints(plan, delivery.code)

    def program(workload: Workload) -> dict[str, Any]:
        own: dict[str, Any] = (
            {"image": image(workload.image)} if workload.foreign or workload.image != agent_image else {}
        )
        if delivery.code and (workload.kind != "gateway" or workload.files):
            own["files"] = contents.files_of(workload, delivery.code)
        return {**_workload(plan, workload, sources), "fingerprint": prints[workload.host], **own}

    blocks: dict[str, Any] = {
        "project": Project(name=label(plan.name), delivery="image" if baked else "configMap", **project),
        "images": Images(agent=image(agent_image), registry=image(by_kind["registry"][0].image)),
        "defaults": Pod(grace_seconds=GRACE_SECONDS),
        "agents": {workload.name: Agent(**program(workload)) for workload in by_kind["agent"]},
        "registry": Registry(**_workload(plan, by_kind["registry"][0], sources)),
        "network_policy": {"enabled": plan.isolated},
    }
    if by_kind["service"]:
        blocks["services"] = {
            workload.name: Companion(**program(workload), **_companion(workload)) for workload in by_kind["service"]
        }
    if by_kind["gateway"]:
        gateway = by_kind["gateway"][0]
        edge: dict[str, Any] = {"edge": rules.values(gateway.door)} if gateway.door else {}
        blocks["gateway"] = Gateway(**program(gateway), **edge)
    if sources:
        blocks["secrets"] = {name: Secret(file=file) for file, name in sources.items()}
    return Values(**blocks)


def _workload(plan: Plan, workload: Workload, sources: Mapping[str, str]) -> dict[str, Any]:
    block: dict[str, Any] = {
        "args": list(workload.command),
        "env": dict(sorted(workload.env.items())),
        "resources": _resources(workload.resources),
        "replicas": workload.replicas,
        "stateless": workload.stateless,
    }
    optional = {
        "health_paths": workload.health_paths
        and HealthPaths(live=workload.health_paths[0], ready=workload.health_paths[1]),
        "calls": list(workload.calls),
        "waits_for": [plan.workload(host).url_for_others() for host in workload.waits_for],
        "secrets": {secret.target: sources[secret.file] for secret in workload.secrets},
        "labels": dict(sorted(workload.labels.items())),
        "egress": bool(workload.egress),
        "egress_to": _blocks(workload.reach),
        "publish": workload.published is not None,
        "public_url": workload.public_url,
        "port": workload.published and workload.published[1],
        "collector_port": workload.collector and workload.collector.port,
        "state": _state(workload) if workload.state else None,
    }
    return block | {key: value for key, value in optional.items() if value}


def _state(workload: Workload) -> State:
    """Return the state of a workload, in a volume that holds what agents.yaml lets it fill."""
    # an audit has an eighth more for a moment, a file system keeps some for itself, and confirmations lie there too
    needed = workload.room * 5 // 4 + (256 << 20)
    default = State()
    size = default.size if needed <= 1 << 30 else f"{math.ceil(needed / (1 << 30))}Gi"
    # spelt out: the chart has no defaults for one workload alone
    return State(**default.model_dump() | {"enabled": True, "size": size})


def _companion(workload: Workload) -> dict[str, Any]:
    """Return what only services say: what they speak, and of an image that is not ours how it is run."""
    foreign = workload.foreign
    if foreign is None:
        return {"protocol": "http" if workload.health_paths else "mcp"}
    spoken = {"mcp": "mcp", "openai": "http", "other": "tcp"}
    block: dict[str, Any] = {
        "protocol": spoken[foreign.provides],
        "foreign": True,
        "container_port": workload.port,
        "user": foreign.user,
    }
    optional: dict[str, Any] = {
        "path": foreign.path if foreign.provides == "mcp" else "",
        "entrypoint": list(foreign.entrypoint),
        "health_command": list(foreign.health_command),
    }
    # in memory, as compose has it
    empty = {"medium": "Memory", "sizeLimit": workload.resources.memory}
    names = {f"writable-{index}": path for index, path in enumerate(foreign.writable)}
    optional["volumes"] = [{"name": name, "emptyDir": empty} for name in names]
    optional["volume_mounts"] = [{"name": name, "mountPath": path} for name, path in names.items()]
    return block | {key: value for key, value in optional.items() if value}


def _blocks(reach: Sequence[str]) -> list[dict[str, Any]]:
    """Return peers of a network policy; none where one of `reach` is a name."""
    # policies know addresses only; with a name among them the chart lets the registry into the world
    try:
        return [ip_block(block) for block in reach]
    except ValueError:
        return []


def _resources(limits: Limits) -> Resources:
    """Return the plan's limits, and requests where the chart's default would be above them."""
    # Kubernetes refuses a pod that requests more than its limit
    stated: dict[str, Any] = {"limits": {"cpu": f"{limits.cpus:g}", "memory": limits.memory}}
    requests = Resources().requests
    lowered = {}
    if _mebibytes(limits.memory) < _mebibytes(requests["memory"]):
        lowered["memory"] = limits.memory
    if limits.cpus * 1000 < int(requests["cpu"].removesuffix("m")):
        lowered["cpu"] = f"{limits.cpus:g}"
    return Resources(**stated, **({"requests": lowered} if lowered else {}))


def _mebibytes(memory: str) -> int:
    return int(memory[:-2]) * (1024 if memory.endswith("Gi") else 1)


def image(reference: str) -> Image:
    """Split `[registry/]repository[:tag][@digest]` as container runtimes do it."""
    rest, _, digest = reference.partition("@")
    host, slash, path = rest.partition("/")
    if not slash or not (set(".:") & set(host) or host == "localhost"):
        host = ""
        path = rest
    repository, _, tag = path.partition(":")
    parts = {"registry": host, "repository": repository, "tag": tag, "digest": digest}
    return Image(**parts)


def secret_names(plan: Plan) -> dict[str, str]:
    """Return secret file -> its name among the values."""
    # fit for `--set-file secrets.NAME.content`, whose path is split at dots
    names: dict[str, str] = {}
    for file in sorted({secret.file for workload in plan.workloads for secret in workload.secrets}):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", file).strip("-") or "secret"
        taken = name in names.values()
        names[file] = f"{name}-{hashlib.sha256(file.encode()).hexdigest()[:6]}" if taken else name
    return names


def label(text: str) -> str:
    """Return `text` made fit for a label value."""
    # Kubernetes takes 63 characters, and none of `-._` at either end
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:63].strip("-._")


def _over(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overlay.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _over(base[key], value) if both else value
    return merged

"""Plan -> a Helm chart: the static one, byte for byte, and the values that make it this fleet. Kubernetes 1.30+."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pallas_contract.fleet.model import Resources as Limits
from pallas_contract.problems import Problem, Where
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import GRACE_SECONDS, Plan, Workload
from pallas_gen.project.configmaps import Delivery
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

FILE = PurePosixPath("values.yaml")

Files = dict[PurePosixPath, str]

_LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_TAKEN = frozenset({"pallas-deny", "pallas-test"})
"""Names of the chart's own network policies."""
_OURS = ("app.kubernetes.io/", "helm.sh/")


def render(plan: Plan, delivery: Delivery, chart: Mapping[PurePosixPath, str]) -> Files:
    """The files of an installable chart: copies of `chart`, and complete values."""
    copies = {path: text for path, text in chart.items() if path != FILE}
    return copies | render_values(plan, delivery, complete=True)


def render_values(plan: Plan, delivery: Delivery, *, complete: bool = False) -> Files:
    """The values alone, for the published chart; `complete` spells out its defaults as well."""
    own = values(plan, delivery).model_dump(mode="json", by_alias=True, exclude_unset=True)
    document = _over(defaults(), own) if complete else own
    return {FILE: yaml_out.dump(document, source=plan.source, override="a values file of your own", literal=True)}


def defaults() -> dict[str, Any]:
    """The chart's default values. The registry says nothing of its own: `defaults` is for it too."""
    return Values().model_dump(mode="json", by_alias=True, exclude={"registry"}) | {"registry": {}}


def problems(plan: Plan) -> Iterator[Problem]:
    """What the fleet file says and this target cannot do."""
    for item in plan.workloads:
        section = {"agent": f"agents.{item.name}", "service": f"services.{item.name}"}.get(item.kind, "registry")
        if item.host in _TAKEN:
            yield Problem(Where(plan.source, field=section), f"the chart has a {item.host} of its own", "rename it")
        for key, value in item.labels.items():
            if not _LABEL_KEY.fullmatch(key) or not _LABEL.fullmatch(value) or key.startswith(_OURS):
                where = Where(plan.source, field=f"{section}.labels.{key}")
                hint = "63 letters, digits, `.`, `_` or `-`; app.kubernetes.io/ is taken by the chart"
                yield Problem(where, f"{key}={value!r} cannot be a Kubernetes label", hint)
        if "pids" in item.resources.model_fields_set:
            where = Where(plan.source, field=f"{section}.resources.pids")
            hint = "set podPidsLimit in the kubelet's configuration"
            yield Problem(where, "a pod has no limit of its own for processes", hint, "warning")


def next_steps(plan: Plan, chart: str, project: str) -> Iterator[str]:
    """The command that installs what was written."""
    yield ""
    name = re.sub(r"[^a-z0-9-]+", "-", plan.name.lower())[:50].strip("-") or "pallas"
    lines = [f"helm upgrade --install {name} {chart} --namespace {name} --create-namespace"]
    for file, secret in secret_names(plan).items():
        path = file if file.startswith("/") or project == "." else f"{project}/{file}"
        lines.append(f"--set-file secrets.{secret}.content={path}")
    yield " \\\n  ".join(lines)


def values(plan: Plan, delivery: Delivery) -> Values:
    """What the chart is told about this fleet. Secrets by name, never by content."""
    sources = secret_names(plan)
    by_kind: dict[str, list[Workload]] = {"agent": [], "service": [], "registry": []}
    for item in plan.workloads:
        by_kind[item.kind].append(item)
    images = {kind: items[0].image for kind, items in by_kind.items() if items}
    baked = not any(item.needs_code for item in by_kind["agent"])
    project: dict[str, Any] = {"config": delivery.config, "code": delivery.code}

    prints = fingerprints(plan, delivery.code)

    def program(item: Workload) -> dict[str, Any]:
        return {**_workload(plan, item, sources), "fingerprint": prints[item.host]}

    out: dict[str, Any] = {
        "project": Project(name=label(plan.name), delivery="image" if baked else "configMap", **project),
        "images": Images(agent=image(images["agent"]), registry=image(images["registry"])),
        "defaults": Pod(grace_seconds=GRACE_SECONDS),
        "agents": {item.name: Agent(**program(item)) for item in by_kind["agent"]},
        "registry": Registry(**_workload(plan, by_kind["registry"][0], sources)),
        "network_policy": {"enabled": plan.isolated},
    }
    if by_kind["service"]:
        out["services"] = {
            item.name: Companion(**program(item), protocol="http" if item.health_paths else "mcp")
            for item in by_kind["service"]
        }
    if sources:
        out["secrets"] = {name: Secret(file=file) for file, name in sources.items()}
    return Values(**out)


def _workload(plan: Plan, item: Workload, sources: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "args": list(item.command),
        "env": dict(sorted(item.env.items())),
        "resources": _resources(item.resources),
        "replicas": item.replicas,
        "stateless": item.stateless,
    }
    optional = {
        "health_paths": item.health_paths and HealthPaths(live=item.health_paths[0], ready=item.health_paths[1]),
        "calls": list(item.calls),
        "waits_for": [plan.workload(host).url_for_others() for host in item.waits_for],
        "secrets": {secret.target: sources[secret.file] for secret in item.secrets},
        "labels": dict(sorted(item.labels.items())),
        "egress": item.egress,
        "egress_to": _blocks(item.reach),
        "publish": item.published is not None,
        "public_url": item.public_url,
        "port": item.published and item.published[1],
        "collector_port": item.collector and item.collector.port,
        # spelt out: the chart has no defaults for one workload alone
        "state": State(**State(enabled=True).model_dump()) if item.state else None,
    }
    return out | {key: value for key, value in optional.items() if value}


def _blocks(reach: Sequence[str]) -> list[dict[str, Any]]:
    """Peers of a network policy; none where one of `reach` is a name, which policies cannot say."""
    try:
        return [ip_block(block) for block in reach]
    except ValueError:
        return []


def fingerprints(plan: Plan, code: Mapping[str, str]) -> dict[str, str]:
    """Host -> fingerprint of all that a program reads at its start and that its pod does not say.

    A file that is one member's own module or card concerns no other member.
    """
    owners: dict[str, set[str]] = {}
    for item in plan.workloads:
        for file in item.own_files:
            owners.setdefault(file, set()).add(item.host)
    shared: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {item.host: {} for item in plan.workloads}

    for path, text in code.items():
        whose = [owners[place] for place in _places(path) if place in owners]
        if not whose:
            shared[path] = text
        for host in set().union(*whose):
            own[host][path] = text
    common = _digest(shared)
    return {item.host: _digest([item.fingerprint, common, own[item.host]])[:16] for item in plan.workloads}


def _places(path: str) -> list[str]:
    """A file, and every folder it is in."""
    return [path, *(f"{folder}/" for folder in PurePosixPath(path).parents)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _resources(limits: Limits) -> Resources:
    """The plan's limits; a request only where the chart's default would be above the limit."""
    own: dict[str, Any] = {"limits": {"cpu": f"{limits.cpus:g}", "memory": limits.memory}}
    requests = Resources().requests
    over = {}
    if _mebibytes(limits.memory) < _mebibytes(requests["memory"]):
        over["memory"] = limits.memory
    if limits.cpus * 1000 < int(requests["cpu"].removesuffix("m")):
        over["cpu"] = f"{limits.cpus:g}"
    return Resources(**own, **({"requests": over} if over else {}))


def _mebibytes(memory: str) -> int:
    return int(memory[:-2]) * (1024 if memory.endswith("Gi") else 1)


def image(reference: str) -> Image:
    """`[registry/]repository[:tag][@digest]` taken apart, as container runtimes do it."""
    rest, _, digest = reference.partition("@")
    host, slash, path = rest.partition("/")
    if not slash or not (set(".:") & set(host) or host == "localhost"):
        host, path = "", rest
    repository, _, tag = path.partition(":")
    parts = {"registry": host, "repository": repository, "tag": tag, "digest": digest}
    return Image(**parts)


def secret_names(plan: Plan) -> dict[str, str]:
    """Secret file -> its name among the values: fit for `--set-file secrets.NAME.content`, so without a dot."""
    out: dict[str, str] = {}
    for file in sorted({secret.file for item in plan.workloads for secret in item.secrets}):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", file).strip("-") or "secret"
        taken = name in out.values()
        out[file] = f"{name}-{hashlib.sha256(file.encode()).hexdigest()[:6]}" if taken else name
    return out


def label(text: str) -> str:
    """`text` made fit for a label value."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:63].strip("-._")


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        out[key] = _over(base[key], value) if both else value
    return out

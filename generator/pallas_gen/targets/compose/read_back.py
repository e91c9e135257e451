"""compose.yaml on disk -> the programs it runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from pallas_contract import names
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import Plan, Workload
from pallas_gen.targets.compose import render
from pallas_gen.targets.observed import ObservedWorkload, Tree, Unreadable, mebibytes, shared_env


@lru_cache(maxsize=1)
def _parsed(content: bytes) -> Any:  # `verify` asks for the same file twice, and nobody changes what it gets
    return yaml_out.load(content)


def read(path: Path) -> Tree:
    """Parse a compose file.

    Raises:
        Unreadable: it is no YAML, or no mapping.
    """
    try:
        document = _parsed(path.read_bytes())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise Unreadable(f"is no YAML: {error.problem}", line=line, column=column) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, or a date that there is not
        raise Unreadable(f"is no YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(document, dict):
        raise Unreadable("is no compose file: it holds no mapping")
    return document


def recorded(document: Tree) -> dict[str, str]:
    """Return the digests of what was mounted when a compose file was written; empty where it has none."""
    record = document.get(render.RECORD)
    return {str(path): str(digest) for path, digest in record.items()} if isinstance(record, dict) else {}


def workloads(document: Tree, plan: Plan, project: PurePosixPath) -> dict[str, ObservedWorkload]:
    """Return every service of a compose file, by host; `project` is the way from it to the folder of agents.yaml."""
    services: Tree = document["services"]
    planned = {workload.host: workload for workload in plan.workloads}
    joined = {host: set(service.get("networks", ())) for host, service in services.items()}
    internal = {name for name, network in document.get("networks", {}).items() if network.get("internal")}
    files = _secret_files(document, plan, project)
    return {
        host: _workload(
            service,
            secrets=tuple(sorted(f"{use['target']}: {files.get(use['source'])}" for use in service.get("secrets", ()))),
            peers=tuple(sorted(_peers(host, joined))),
            collector=_collector(planned.get(host), service, joined=joined[host], internal=internal),
        )
        for host, service in services.items()
    }


def _secret_files(document: Tree, plan: Plan, project: PurePosixPath) -> dict[str, str]:
    """Return the file of each secret as the plan names it; one that the plan has not, as it is written."""
    files = {secret.file for workload in plan.workloads for secret in workload.secrets}
    planned = {str(project / file): str(PurePosixPath(file)) for file in files}
    written = {name: _literal(secret["file"]) for name, secret in document.get("secrets", {}).items()}
    return {name: planned.get(file, file) for name, file in written.items()}


def _workload(service: Tree, *, secrets: tuple[str, ...], peers: tuple[str, ...], collector: str) -> ObservedWorkload:
    limits = service["deploy"]["resources"]["limits"]
    env = {key: _literal(value) for key, value in service["environment"].items()}
    aliases = env.get(names.ENV_LISTEN_ON, "").split(",")
    return ObservedWorkload(
        image=_literal(service["image"]),
        command=tuple(map(_literal, (*service.get("entrypoint", ()), *service.get("command", ())))),
        env=shared_env(env),
        port=int((env.get(names.ENV_BIND) or service["expose"][0]).rpartition(":")[2]),
        probe=_literal(service["healthcheck"]["test"][-1]) if "healthcheck" in service else "",
        order=tuple(sorted(service.get("depends_on", ()))),
        secrets=secrets,
        limits=(float(limits["cpus"]), mebibytes(limits["memory"])),
        peers=peers,
        keeps=tuple(volume["target"] for volume in service.get("volumes", ()) if volume["type"] == "volume"),
        callers=tuple(sorted(alias.removeprefix("from.") for alias in aliases if alias)),
        collector=collector,
    )


def _literal(text: str) -> str:
    """Undo the doubling by which compose is kept from interpolating."""
    return text.replace("$$", "$")


def _peers(host: str, joined: Mapping[str, set[str]]) -> set[str]:
    # on the collector's network no agent listens, so it connects nobody
    networks = joined[host] - {render.TELEMETRY}
    return {other for other in joined if other != host and joined[other] & networks}


def _collector(workload: Workload | None, service: Tree, *, joined: set[str], internal: set[str]) -> str:
    """Return the collector's address in the plan if its network is the right one, else the network."""
    route = ""
    if render.TELEMETRY in joined:
        route = render.TELEMETRY
    elif names.ENV_OTLP_ENDPOINT in service["environment"] and joined - internal:
        route = "outside"
    collector = workload.collector if workload else None
    right = collector and route == (render.TELEMETRY if collector.beside else "outside")
    return f"{collector.host}:{collector.port}" if collector and right else route

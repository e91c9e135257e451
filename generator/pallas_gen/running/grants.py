"""What compose.yaml grants a container, and what docker says that it has, in the words of a shape. Pure."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pallas_contract import names
from pallas_gen.plan import Workload
from pallas_gen.targets.observed import mebibytes

Tree = Mapping[str, Any]
_ANONYMOUS = re.compile(r"[0-9a-f]{64}")
"""Name of the volume that an image asks for itself: empty, and nobody else's."""
_UNLIMITED = "unlimited"
_OWN_IPC = frozenset({"", "none", "private", "shareable"})


def planned(service: Tree, workload: Workload, project: str, root: str) -> dict[str, Any]:
    """Return what a service of compose.yaml grants, by the fields of a shape.

    `project` is the name of the compose project, `root` the host's path of the folder of agents.yaml. The sources in
    `service` are relative to it.
    """
    limits = service["deploy"]["resources"]["limits"]
    return {
        "user": service["user"],
        "privileges": tuple(sorted(_listed(service, ("cap_add", "cap_drop", "security_opt")))),
        "mounts": tuple(sorted(_planned_mounts(service, workload, project, root))),
        "ports": tuple(
            sorted(
                _port(port["host_ip"], port["published"], f"{port['target']}/{port['protocol']}")
                for port in service.get("ports", ())
            )
        ),
        "memory": _bytes(mebibytes(limits["memory"]) << 20),
        "cpus": limits["cpus"],
        "pids": str(limits["pids"]),
    }


def actual(container: Tree, root: str) -> dict[str, Any]:
    """Return what a container has, as `docker inspect` tells it, by the fields of a shape."""
    host = container["HostConfig"]
    bindings = (host.get("PortBindings") or {}).items()
    pids = host.get("PidsLimit") or 0
    return {
        "user": str(container["Config"].get("User") or ""),
        "privileges": tuple(sorted({*_capabilities(host), *_shared_with_host(host)})),
        "mounts": tuple(sorted(_actual_mounts(container, root))),
        "ports": tuple(
            sorted(_port(at["HostIp"], at["HostPort"], target) for target, listed in bindings for at in listed or ())
        ),
        "memory": _bytes(host.get("Memory") or 0),
        "cpus": f"{host['NanoCpus'] / 1e9:g}" if host.get("NanoCpus") else _UNLIMITED,
        "pids": str(pids) if pids > 0 else _UNLIMITED,
    }


def root(containers: Iterable[tuple[Tree, Workload, Tree]], folder: str) -> str:
    """Return the folder of agents.yaml as the engine names it, where most mounts lie: `folder`, if none tells.

    It is another one where the fleet was started from another copy, or where the engine is in a machine of its own.
    `containers` are what runs, each with its workload and its service.
    """
    roots: Counter[str] = Counter()
    for container, workload, service in containers:
        sources = {mount["Destination"]: str(mount.get("Source") or "") for mount in container.get("Mounts") or ()}
        for target, file in _binds(service, workload):
            if (source := sources.get(target, "")).endswith(f"/{file}"):
                roots[source.removesuffix(f"/{file}")] += 1
    return roots.most_common(1)[0][0] if roots else folder


def _binds(service: Tree, workload: Workload) -> Iterator[tuple[str, str]]:
    for volume in service.get("volumes", ()):
        if volume["type"] == "bind":
            yield volume["target"], volume["source"]
    for secret in workload.secrets:
        yield f"{names.SECRETS_DIR}/{secret.target}", secret.file


def _planned_mounts(service: Tree, workload: Workload, project: str, root: str) -> Iterator[str]:
    for target, file in _binds(service, workload):
        yield _mount(target, _source(os.path.join(root, file), root), writable=False)
    for volume in service.get("volumes", ()):
        if volume["type"] == "volume":
            yield _mount(volume["target"], f"volume {project}_{volume['source']}", writable=True)
    for entry in service["tmpfs"]:
        yield _in_memory(*entry.split(":", 1))


def _actual_mounts(container: Tree, root: str) -> Iterator[str]:
    for mount in container.get("Mounts") or ():
        name = str(mount.get("Name") or "")
        if mount["Type"] == "volume" and _ANONYMOUS.fullmatch(name):
            continue
        path = str(mount.get("Source") or "")
        source = f"volume {name}" if mount["Type"] == "volume" else _source(path, root) if path else mount["Type"]
        yield _mount(mount["Destination"], source, writable=bool(mount["RW"]))
    for target, options in (container["HostConfig"].get("Tmpfs") or {}).items():
        yield _in_memory(target, options)


def _mount(target: str, source: str, *, writable: bool) -> str:
    return f"{target} from {source}{' (writable)' if writable else ''}"


def _in_memory(target: str, options: str) -> str:
    return f"{target} in memory ({options})"


def _source(path: str, root: str) -> str:
    """Return the host's path, from the folder of agents.yaml where it lies in that."""
    path = os.path.normpath(path)
    return path.removeprefix(f"{root}/")


def _capabilities(host: Tree) -> Iterator[str]:
    if host.get("Privileged"):
        yield "privileged"
    kinds = {"cap_add": "CapAdd", "cap_drop": "CapDrop", "security_opt": "SecurityOpt", "group_add": "GroupAdd"}
    yield from _listed({word: host.get(key) for word, key in kinds.items()}, kinds)


def _shared_with_host(host: Tree) -> Iterator[str]:
    for word, key in {"pid": "PidMode", "uts": "UTSMode", "userns_mode": "UsernsMode"}.items():
        if mode := host.get(key):
            yield f"{word} {mode}"
    if (ipc := host.get("IpcMode") or "") not in _OWN_IPC:
        yield f"ipc {ipc}"
    for device in host.get("Devices") or ():
        yield f"device {device['PathOnHost']}"
    for rule in host.get("DeviceCgroupRules") or ():
        yield f"device_cgroup_rule {rule}"
    if host.get("DeviceRequests"):
        yield "devices of a driver, such as GPUs"


def _listed(lists: Tree, words: Iterable[str]) -> Iterator[str]:
    for word in words:
        for entry in lists.get(word) or ():
            yield f"{word} {_plain(str(entry))}"


def _plain(entry: str) -> str:
    """Return a capability or option in the one of its spellings that compose.yaml has."""
    entry = entry.removeprefix("CAP_")
    name = entry.partition("=")[0]
    # compose puts the whole profile there
    return "no-new-privileges:true" if entry == "no-new-privileges" else name if name == "seccomp" else entry


def _port(address: str, port: str, target: str) -> str:
    return f"{address or 'any address'}:{port} for {target}"


def _bytes(count: int) -> str:
    whole, rest = divmod(count, 1 << 20)
    return (f"{count} bytes" if rest else f"{whole} MiB") if count else _UNLIMITED

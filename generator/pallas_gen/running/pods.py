"""What the chart grants a pod, and what the template of a Deployment has, in the words of a shape. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pallas_gen.plan import Workload
from pallas_gen.project.misfits import CONTAINER_UID

Tree = Mapping[str, Any]
OF_VALUES = frozenset({"user", "mounts", "memory", "cpus"})
"""Fields that values of the chart can change, which the plan does not know."""
_VOLUMES = {
    "tmp": {"emptyDir"},
    "project": {"emptyDir", "configMap", "projected"},
    "config": {"configMap"},
    "code": {"configMap"},
    "secrets": {"projected"},
    "state": {"emptyDir", "persistentVolumeClaim"},
}
"""The chart's own volumes, and the kinds that they may have."""
_WRITABLE = frozenset({"tmp", "state"})
_INIT = frozenset({"project", "wait"})
_SHARED = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace")


def planned(workload: Workload) -> dict[str, Any]:
    """Return what the chart grants, by the fields of a shape. Of mounts only those beside its own volumes."""
    user = workload.foreign.user if workload.foreign else CONTAINER_UID
    writable = workload.foreign.writable if workload.foreign else ()
    mounts = (f"{path} from emptyDir writable-{index} (writable)" for index, path in enumerate(writable))
    return {"user": f"{user}:{user}", "privileges": (), "mounts": tuple(sorted(mounts))}


def actual(pod: Tree, image: str) -> dict[str, Any]:
    """Return what the spec of a pod has, by the fields of a shape: `privileges` beyond those of the chart.

    `image` is the planned one, which its init containers run too.

    Raises:
        KeyError, TypeError, ValueError: it is not as the chart makes it.
    """
    (main,) = pod["containers"]
    security = _security(pod)
    own = _security(main)
    user, group = (own.get(key, security.get(key, "image's")) for key in ("runAsUser", "runAsGroup"))
    return {
        "read_only": bool(own.get("readOnlyRootFilesystem")),
        "user": f"{user}:{group}",
        "privileges": tuple(
            sorted({*_of_pod(pod), *_of_container(main, security), *_of_init(pod, {image, main["image"]})})
        ),
        "mounts": tuple(sorted(_foreign_mounts(pod, main))),
    }


def _of_pod(pod: Tree) -> Iterator[str]:
    yield from (key for key in _SHARED if pod.get(key))
    if pod.get("automountServiceAccountToken") is not False:
        yield "automountServiceAccountToken"
    for volume in pod.get("volumes") or ():
        if path := (volume.get("hostPath") or {}).get("path"):
            yield f"hostPath {path}"


def _of_container(container: Tree, of_pod: Tree) -> Iterator[str]:
    security = _security(container)
    if security.get("privileged"):
        yield "privileged"
    if security.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation"
    capabilities = security.get("capabilities") or {}
    yield from (f"capability {name}" for name in capabilities.get("add") or ())
    if "ALL" not in (capabilities.get("drop") or ()):
        yield "the default capabilities"
    if security.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
        yield "may run as root"
    profile = (security.get("seccompProfile") or of_pod.get("seccompProfile") or {}).get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        yield f"seccompProfile {profile or 'of the node'}"


def _of_init(pod: Tree, images: set[str]) -> Iterator[str]:
    for container in pod.get("initContainers") or ():
        name = container["name"]
        yield from (f"init container {name}: {privilege}" for privilege in _of_container(container, _security(pod)))
        if name not in _INIT or container["image"] not in images:
            yield f"init container {name}: runs {container['image']}"


def _foreign_mounts(pod: Tree, main: Tree) -> Iterator[str]:
    """Yield the mounts of a container that the chart does not make by itself."""
    kinds = {volume["name"]: _kind(volume) for volume in pod.get("volumes") or ()}
    for mount in main.get("volumeMounts") or ():
        name, kind = mount["name"], kinds.get(mount["name"], "nothing")
        writable = not mount.get("readOnly")
        if kind not in _VOLUMES.get(name, ()) or (writable and name not in _WRITABLE):
            yield f"{mount['mountPath']} from {kind} {name}{' (writable)' if writable else ''}"


def _kind(volume: Tree) -> str:
    return next((key for key in volume if key != "name"), "nothing")


def _security(spec: Tree) -> Tree:
    return spec.get("securityContext") or {}

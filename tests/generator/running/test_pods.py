"""The pod of a Deployment as an API server has it, and edits of it; whole releases are in test_kubernetes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pallas_gen.running import pods

IMAGE = "pallas-agent:1"
OWN = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
}
POD: dict[str, Any] = {
    "automountServiceAccountToken": False,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {
        "fsGroup": 10001,
        "runAsGroup": 10001,
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "initContainers": [{"name": "project", "image": IMAGE, "securityContext": OWN}],
    "containers": [
        {
            "name": "agent",
            "image": IMAGE,
            "securityContext": OWN,
            "volumeMounts": [
                {"mountPath": "/tmp", "name": "tmp"},
                {"mountPath": "/project", "name": "project", "readOnly": True},
                {"mountPath": "/run/secrets", "name": "secrets", "readOnly": True},
                {"mountPath": "/state", "name": "state"},
            ],
        }
    ],
    "volumes": [
        {"emptyDir": {"sizeLimit": "64Mi"}, "name": "tmp"},
        {"emptyDir": {"sizeLimit": "8Mi"}, "name": "project"},
        {"name": "secrets", "projected": {"defaultMode": 288, "sources": []}},
        {"name": "state", "persistentVolumeClaim": {"claimName": "scout-state"}},
    ],
}


def test_a_pod_of_the_chart_has_nothing_beyond_it() -> None:
    expected = {"read_only": True, "user": "10001:10001", "privileges": (), "mounts": ()}
    assert pods.actual(POD, IMAGE) == expected


EDITS: list[tuple[Callable[[dict[str, Any]], object], str, object]] = [
    (lambda pod: pod.pop("securityContext"), "user", "image's:image's"),
    (
        lambda pod: pod.pop("securityContext"),
        "privileges",
        ("init container project: seccompProfile of the node", "seccompProfile of the node"),
    ),
    (lambda pod: pod.pop("automountServiceAccountToken"), "privileges", ("automountServiceAccountToken",)),
    (
        lambda pod: pod.update(hostIPC=True, shareProcessNamespace=True),
        "privileges",
        ("hostIPC", "shareProcessNamespace"),
    ),
    (lambda pod: pod["containers"][0].update(securityContext={}), "read_only", False),
    (
        lambda pod: pod["initContainers"].append({"name": "more", "image": IMAGE, "securityContext": OWN}),
        "privileges",
        (f"init container more: runs {IMAGE}",),
    ),
    (
        lambda pod: pod["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
        "privileges",
        ("hostPath /",),
    ),
    (
        lambda pod: pod["volumes"].__setitem__(3, {"name": "state", "nfs": {"path": "/"}}),
        "mounts",
        ("/state from nfs state (writable)",),
    ),
    (
        lambda pod: pod["containers"][0]["volumeMounts"][2].pop("readOnly"),
        "mounts",
        ("/run/secrets from projected secrets (writable)",),
    ),
]


@pytest.mark.parametrize(("edit", "field", "expected"), EDITS)
def test_an_edit_is_told(edit: Callable[[dict[str, Any]], object], field: str, expected: object) -> None:
    pod = copy.deepcopy(POD)
    edit(pod)
    assert pods.actual(pod, IMAGE)[field] == expected


def test_a_sidecar_is_no_pod_of_the_chart() -> None:
    with pytest.raises(ValueError, match="too many values"):
        pods.actual({**POD, "containers": POD["containers"] * 2}, IMAGE)


def test_what_an_image_of_another_may_write_to_is_of_the_plan() -> None:
    foreign = SimpleNamespace(user=999, writable=("/data", "/b"))
    workload: Any = SimpleNamespace(foreign=foreign)
    pod = copy.deepcopy(POD)
    pod["volumes"] += [{"name": f"writable-{number}", "emptyDir": {}} for number in range(2)]
    pod["containers"][0]["volumeMounts"] += [
        {"mountPath": path, "name": f"writable-{number}"} for number, path in enumerate(foreign.writable)
    ]
    planned = pods.planned(workload)
    assert planned["user"] == "999:999"
    assert planned["mounts"] == pods.actual(pod, IMAGE)["mounts"] != ()

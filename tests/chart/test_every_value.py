"""Every value of the chart does something: another one, alone, makes other objects, and is found in them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from pallas_gen.targets.helm.values import Values
from pallas_gen.targets.helm.values_workload import Pod, State

pytestmark = pytest.mark.helm

WRITTEN = """\
name: Graph
public_url: https://{name}.ai.example.com
telemetry: {otlp_endpoint: http://otel:4318}
agents:
  one: {module: agents.scout, port: 8101, depends_on: [tools], instance_scope: request, egress: true}
  keeper: {module: agents.other, port: 8102, publish: false, keep_conversations: true}
services:
  tools: {module: agents.model, port: 8103}
"""
POD: dict[str, Any] = {
    "replicas": 331,
    "resources.limits": {"cpu": "7331m"},
    "resources.requests": {"cpu": "7331m"},
    "autoscaling.enabled": True,
    "autoscaling.minReplicas": 331,
    "autoscaling.maxReplicas": 331,
    "autoscaling.targetCpu": 331,
    "autoscaling.behavior": {"scaleDown": {"stabilizationWindowSeconds": 331}},
    "service.type": "NodePort",
    "service.appProtocol": "needle.dev/mcp",
    "service.annotations": {"k": "needle"},
    "service.labels": {"k": "needle"},
    "labels": {"k": "needle"},
    "annotations": {"k": "needle"},
    "serviceAccountAnnotations": {"k": "needle"},
    "envFrom": [{"secretRef": {"name": "needle"}}],
    "volumes": [{"name": "needle", "emptyDir": {}}],
    "volumeMounts": [{"name": "needle", "mountPath": "/needle"}],
    "nodeSelector": {"k": "needle"},
    "tolerations": [{"key": "needle", "operator": "Exists"}],
    "affinity": {"needle": {}},
    "topologySpread": False,
    "priorityClassName": "needle",
    "runtimeClassName": "needle",
    "user": 331,
    "tmpSize": "7331Mi",
    "startupSeconds": 662,  # asked every two seconds
    "waitSeconds": 331,
    "preStopSeconds": 331,
    "graceSeconds": 326,  # and five of preStop
}
STATE: dict[str, Any] = {
    "enabled": False,
    "persistent": False,
    "existingClaim": "needle",
    "size": "7331Mi",
    "storageClass": "needle",
}
FLEET: dict[str, Any] = {
    "global.imageRegistry": "needle.example",
    "images.agent.registry": "needle.example",
    "images.agent.repository": "needle",
    "images.agent.tag": "needle",
    "images.agent.digest": "sha256:needle",
    "images.registry.registry": "needle.example",
    "images.registry.repository": "needle",
    "images.registry.tag": "needle",
    "images.registry.digest": "sha256:needle",
    "images.pullPolicy": "Never",
    "images.pullSecrets": ["needle"],
    "networkPolicy.enabled": False,
    "networkPolicy.publishedFrom": [{"ipBlock": {"cidr": "10.73.31.0/24"}}],
    "networkPolicy.monitoringFrom": [{"ipBlock": {"cidr": "10.73.31.0/24"}}],
    "networkPolicy.dnsTo": [{"ipBlock": {"cidr": "10.73.31.0/24"}}],
    "networkPolicy.collectorAt": [{"ipBlock": {"cidr": "10.73.31.0/24"}}],
    "networkPolicy.egressTo": [{"ipBlock": {"cidr": "10.73.31.0/24"}}],
    "ingress.enabled": True,
    "ingress.annotations": {"k": "needle"},
    "ingress.className": "needle",
    "ingress.tlsSecret": "needle",
    "httpRoute.enabled": True,
    "httpRoute.annotations": {"k": "needle"},
    "httpRoute.parentRefs": [{"name": "needle"}],
    "serviceMonitor.enabled": True,
    "serviceMonitor.interval": "7331s",
    "serviceMonitor.labels": {"k": "needle"},
    "prometheusRule.enabled": True,
    "prometheusRule.labels": {"k": "needle"},
    "dashboard.enabled": True,
    "kagent.enabled": True,
    "clusterDomain": "needle.example",
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "needle"}}],
}
ROUTES = {"enabled": True, "parentRefs": [{"name": "gateway"}]}
SCALED = {"agents": {"one": {"autoscaling": {"enabled": True}}}}
NEEDED: dict[str, dict[str, Any]] = {
    **{f"agents.one.{path}": SCALED for path in POD if path.startswith("autoscaling.") and path[12:] != "enabled"},
    "agents.one.topologySpread": {"agents": {"one": {"replicas": 2}}},
    **{path: {"ingress": {"enabled": True}} for path in FLEET if path.startswith("ingress.") and path[8:] != "enabled"},
    "httpRoute.annotations": {"httpRoute": ROUTES},
    "httpRoute.parentRefs": {"httpRoute": ROUTES},
    "httpRoute.enabled": {"httpRoute": {**ROUTES, "enabled": False}},
    "networkPolicy.monitoringFrom": {"serviceMonitor": {"enabled": True}},
    "serviceMonitor.interval": {"serviceMonitor": {"enabled": True}},
    "serviceMonitor.labels": {"serviceMonitor": {"enabled": True}},
    "prometheusRule.labels": {"prometheusRule": {"enabled": True}},
}
"""What a value means nothing without."""
WORDS = ("needle", "331", "10.73.31.0/24", "NodePort", 'imagePullPolicy": "Never')
"""By which a value is recognised in what is rendered; a switch has none."""
GENERATED = {"agents", "services", "registry", "gateway", "secrets", "project", "defaults", "global"}
"""Of the fleet file, and compared with it by tests/chart/test_parity.py; `defaults` has the keys of `Pod`."""


def leaves(model: type[BaseModel], way: str = "") -> Iterator[str]:
    """The paths of all values of a model."""
    for name, field in model.model_fields.items():
        path = f"{way}{field.alias or name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from leaves(field.annotation, f"{path}.")
        elif path not in GENERATED:
            yield path


def test_every_value_is_in_a_table() -> None:
    assert set(leaves(Pod)) == set(POD)
    assert set(leaves(State)) == set(STATE)
    found = {path for path in leaves(Values) if path.partition(".")[0] not in GENERATED}
    assert found | {"global.imageRegistry"} == set(FLEET)


@pytest.fixture(scope="module")
def render(compiled) -> Callable[[dict[str, Any]], list[Any]]:
    """The objects of the fleet with other values, once for the same ones."""
    chart = compiled(WRITTEN)
    known = functools.cache(lambda values: chart.render(json.loads(values)).objects)
    return lambda values: known(json.dumps(values))


@pytest.mark.parametrize("path", POD)
def test_of_a_workload(render, path: str) -> None:
    changes(render, f"agents.one.{path}", POD[path])


@pytest.mark.parametrize("path", STATE)
def test_of_what_is_kept(render, path: str) -> None:
    changes(render, f"agents.keeper.state.{path}", STATE[path])


@pytest.mark.parametrize("path", FLEET)
def test_of_the_fleet(render, path: str) -> None:
    changes(render, path, FLEET[path])


def changes(render: Callable[[dict[str, Any]], list[Any]], path: str, value: Any) -> None:
    """Objects differ, and what is in `value` to be recognised is in those that do and in none before.

    A switch makes them differ; test_toggles.py says how.
    """
    around = NEEDED.get(path, {})
    before, after = render(around), render(merged(around, nested(path, value)))
    old, new = json.dumps(before), json.dumps([item for item in after if item not in before])
    assert before != after
    said = "331" if type(value) is int else json.dumps({path.replace("images.pull", "imagePull"): value})
    words = [word for word in WORDS if word in said]
    assert words or isinstance(value, bool)
    assert all(word in new and word not in old for word in words)


def nested(path: str, value: Any) -> dict[str, Any]:
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


def merged(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    both = {key: merged(one[key], two[key]) for key in one.keys() & two.keys() if isinstance(one[key], dict)}
    return one | two | both

"""Each switch of the chart, alone: what it adds, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pallas_contract import names

from .conftest import GRAPH

pytestmark = pytest.mark.helm

GATEWAY = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}
PROMETHEUS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def test_nothing_optional_is_there_unasked(plain) -> None:
    kinds = {item["kind"] for item in plain.objects}
    assert kinds == {"ConfigMap", "Deployment", "NetworkPolicy", "Pod", "Service", "ServiceAccount"}


@pytest.fixture(scope="module")
def scaled(graph):
    """`right` with three replicas, the registry scaled by load."""
    return graph.render(
        {"agents": {"right": {"replicas": 3}}, "registry": {"autoscaling": {"enabled": True, "maxReplicas": 4}}}
    )


def test_replicas_get_a_disruption_budget_and_are_spread(scaled, plain) -> None:
    assert scaled.one("Deployment", "right")["spec"]["replicas"] == 3
    assert set(scaled.of("PodDisruptionBudget")) == {"right", "registry"}
    assert scaled.one("PodDisruptionBudget", "right")["spec"]["maxUnavailable"] == 1
    assert scaled.pod("right")["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "ScheduleAnyway"
    assert "topologySpreadConstraints" not in scaled.pod("top")


def test_autoscaling_owns_the_number_of_replicas(scaled) -> None:
    assert "replicas" not in scaled.one("Deployment", "registry")["spec"]
    spec = scaled.one("HorizontalPodAutoscaler", "registry")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 4)
    assert spec["scaleTargetRef"]["name"] == "registry"


def test_the_registry_is_told_how_many_run_where_somebody_knows(graph, plain) -> None:
    def told(made) -> dict[str, int]:
        return json.loads(made.one("ConfigMap", "pallas-config")["data"][names.REPLICAS_FILE])

    assert told(plain) == {}
    assert told(graph.render({"agents": {"right": {"replicas": 2}}})) == {"right": 2}
    made = graph.render({"agents": {"right": {"replicas": 3}}})
    assert told(made) == {"right": 3}
    scaled = {"replicas": 3, "autoscaling": {"enabled": True}}
    assert told(graph.render({"agents": {"right": scaled}})) == {}


def test_spread_can_be_switched_off(graph) -> None:
    """And with it the question whether `false` wins over a default of true."""
    made = graph.render({"agents": {"right": {"replicas": 2, "topologySpread": False}}})
    assert "topologySpreadConstraints" not in made.pod("right")


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"agents": {"top": {"replicas": 3}}}, "/agents/top/replicas"),
        ({"agents": {"top": {"autoscaling": {"enabled": True}}}}, "/agents/top/autoscaling/enabled"),
        ({"defaults": {"autoscaling": {"enabled": True}}}, "left_one remembers its callers, so there is one of it"),
        ({"agents": {"top": {"replica": 1}}}, "replica"),
        ({"agents": {"top": {"replicas": "3"}}}, "/agents/top/replicas"),
        ({"agents": {"a" * 41: {}}}, "a" * 41),
        ({"nonsense": 1}, "nonsense"),
        ({"agents": {"top": {"preStopSeconds": 0}}}, "/agents/top/preStopSeconds"),
        ({"ingress": {"enabled": True}}, "ingress.enabled needs `public_url` in agents.yaml"),
        ({"httpRoute": {"enabled": True, "parentRefs": [{"name": "gw"}]}}, "httpRoute.enabled needs `public_url`"),
        ({"defaults": {"autoscaling": None}}, "at '/defaults': missing property 'autoscaling'"),
        ({"networkPolicy": None}, "at '': missing property 'networkPolicy'"),
        (
            {"agents": {"left-one": {"replicas": 2}}},
            "agents.left-one is in your values alone: correct the name, or add",
        ),
        ({"services": {"tool": {"replicas": 2}}}, "services.tool is in your values alone"),
        ({"secrets": {"key": {"file": "k.txt"}}}, "--set-file secrets.key.content=k.txt"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_rendered(graph, overlay: dict[str, Any], message: str) -> None:
    assert message in graph.refused(overlay)


def test_null_where_the_default_is_empty_changes_nothing(graph, plain) -> None:
    made = graph.render({"global": None, "ingress": {"annotations": None}, "defaults": {"annotations": None}})
    assert made.objects == plain.objects


def test_the_bare_chart_says_what_it_needs(graph) -> None:
    done = graph.run(None, "--set-json", "agents=null")
    assert done.returncode != 0
    assert "there are no agents" in done.stderr


def test_an_old_kubernetes_is_refused(graph) -> None:
    done = graph.run(None, "--kube-version", "1.29.4")
    assert done.returncode != 0
    assert "chart requires kubeVersion: >=1.30.0-0" in done.stderr


def hosts(manifests, name: str) -> list[str]:
    """The Host headers a workload accepts."""
    return {item["name"]: item["value"] for item in manifests.main(name)["env"]}["PALLAS_ALLOWED_HOSTS"].split(",")


def test_ingress_publishes_by_host_what_is_published(public) -> None:
    made = public.render({"ingress": {"enabled": True, "className": "c", "tlsSecret": "t"}})
    spec = made.one("Ingress", "pallas")["spec"]
    served = {rule["host"]: rule["http"]["paths"][0]["backend"]["service"]["name"] for rule in spec["rules"]}
    assert served == {"top.ai.example.com": "top", "registry.ai.example.com": "registry"}
    assert (spec["ingressClassName"], spec["tls"][0]["hosts"]) == ("c", sorted(served))


def test_what_is_published_accepts_its_public_name(public) -> None:
    made = public.render()
    for name in ("top", "registry"):
        inside = {name, f"{name}.space.svc.cluster.local"}
        assert inside | {f"{name}.ai.example.com", f"{name}.ai.example.com:*"} <= set(hosts(made, name))
    assert not [name for name in hosts(made, "right") if "example.com" in name]


def test_routes_attach_to_the_gateways_named(public) -> None:
    mesh = {"name": "m", "group": "", "kind": "Service"}
    made = public.render({"httpRoute": {"enabled": True, "parentRefs": [{"name": "gw"}, mesh]}})
    assert set(made.of("HTTPRoute")) == {"top", "registry"}
    spec = made.one("HTTPRoute", "top")["spec"]
    assert (spec["hostnames"], spec["parentRefs"]) == (["top.ai.example.com"], [{**GATEWAY, "name": "gw"}, mesh])
    assert "filters" not in spec["rules"][0]
    assert "httpRoute.enabled needs httpRoute.parentRefs" in public.refused({"httpRoute": {"enabled": True}})


def test_a_public_path_is_taken_away_by_a_route_and_refused_by_an_ingress(compiled) -> None:
    chart = compiled(f"public_url: https://example.com/ai/{{name}}\n{GRAPH}")
    made = chart.render({"httpRoute": {"enabled": True, "parentRefs": [{"name": "gw"}]}})
    spec = made.one("HTTPRoute", "top")["spec"]
    (rule,) = spec["rules"]
    assert (spec["hostnames"], rule["matches"][0]["path"]["value"]) == (["example.com"], "/ai/top")
    assert rule["filters"][0]["urlRewrite"]["path"] == {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}
    assert "an Ingress cannot take the path away" in chart.refused({"ingress": {"enabled": True}})


def test_monitoring(graph) -> None:
    on = {"enabled": True, "labels": {"release": "prom"}}
    made = graph.render({"serviceMonitor": on, "prometheusRule": on, "dashboard": {"enabled": True}})
    assert made.one("ServiceMonitor", "pallas")["spec"]["endpoints"][0]["path"] == "/metrics"
    rules = made.one("PrometheusRule", "pallas")["spec"]["groups"][0]["rules"]
    alerts = ["PallasAgentDown", "PallasAgentDegraded", "PallasServiceDown", "PallasFleetFileBroken"]
    assert [rule["alert"] for rule in rules] == alerts
    assert "{{ $labels.agent }}" in rules[0]["annotations"]["summary"]
    board = made.one("ConfigMap", "pallas-dashboard")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["pallas.json"])["uid"] == "pallas-fleet"
    assert PROMETHEUS[0] in made.one("NetworkPolicy", "right")["spec"]["ingress"][0]["from"]


def test_images_of_an_air_gapped_site(graph) -> None:
    made = graph.render(
        {
            "global": {"imageRegistry": "mirror.local:5000"},
            "images": {"agent": {"digest": "sha256:" + "ab" * 32}, "pullSecrets": ["pull"], "pullPolicy": "Always"},
            "agents": {"top": {"image": {"repository": "acme/top"}}},
        }
    )
    digest = "sha256:" + "ab" * 32
    assert made.main("right")["image"] == f"mirror.local:5000/pallas-agent:0.1.0@{digest}"
    assert made.main("top")["image"] == f"mirror.local:5000/acme/top:0.1.0@{digest}"
    assert made.main("registry")["image"] == "mirror.local:5000/pallas-registry:0.1.0"
    for pod in made.pods.values():
        assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]
        containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
        assert {container["imagePullPolicy"] for container in containers} == {"Always"}


def test_gateways_find_mcp_services(graph) -> None:
    made = graph.render(
        {
            "kagent": {"enabled": True},
            "defaults": {"service": {"appProtocol": "agentgateway.dev/mcp", "labels": {"a": "b"}}},
        }
    )
    service = made.one("Service", "top")
    assert service["spec"]["ports"][0]["appProtocol"] == "agentgateway.dev/mcp"
    assert {"a": "b", "kagent.dev/mcp-service": "true"}.items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["annotations"]["kagent.dev/mcp-service-path"] == "/mcp"
    registry = made.one("Service", "registry")
    assert registry["spec"]["ports"][0]["appProtocol"] == "http"
    assert "kagent.dev/mcp-service" not in registry["metadata"]["labels"]


def test_a_service_for_the_world_opens_the_files_port(graph) -> None:
    made = graph.render({"defaults": {"service": {"type": "LoadBalancer"}}})
    ports = {name: [port["port"] for port in item["spec"]["ports"]] for name, item in made.of("Service").items()}
    assert (ports["top"], ports["registry"], ports["right"]) == ([8080, 8101], [8080, 24200], [8080])


def test_placement(graph) -> None:
    said = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
        "runtimeClassName": "gvisor",
    }
    made = graph.render({"defaults": {**said, "user": 0, "annotations": {"a/b": "c"}}})
    for name in ("top", "tools", "registry"):
        assert said.items() <= made.pod(name).items()
        assert "runAsUser" not in made.pod(name)["securityContext"]
        assert made.one("Deployment", name)["spec"]["template"]["metadata"]["annotations"]["a/b"] == "c"


def test_extra_objects_keep_their_braces(graph) -> None:
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"a": "{{ x }} $y"}}
    assert graph.render({"extraObjects": [extra]}).one("ConfigMap", "mine") == extra


def test_secrets_are_created_from_files_or_taken_from_yours(compiled, tmp_path) -> None:
    chart = compiled(
        "name: x\nagents:\n  a: {module: agents.scout, port: 1, secrets: {KEY: {file: k.txt}}}\n",
        fastagent__secrets__yaml="x: 1\n",
        k__txt="line\n",
    )
    (tmp_path / "f").write_text("$ {{ secret }} ü\n")
    yours = {"secrets": {"k-txt": {"existingSecret": "mine", "key": "k"}}}
    made = chart.render(yours, "--set-file", f"secrets.fastagent-secrets-yaml.content={tmp_path / 'f'}")
    (volume,) = (item for item in made.pod("a")["volumes"] if item["name"] == "secrets")
    assert [source["secret"] for source in volume["projected"]["sources"]] == [
        {"name": "mine", "items": [{"key": "k", "path": "KEY"}]},
        {"name": "pallas-secrets", "items": [{"key": "fastagent-secrets-yaml", "path": "fastagent.secrets.yaml"}]},
    ]
    data = made.one("Secret", "pallas-secrets")["data"]
    assert set(data) == {"fastagent-secrets-yaml"}
    assert "secrets" not in {mount["name"] for mount in made.main("registry")["volumeMounts"]}


def test_two_contents_of_one_key_are_refused(compiled) -> None:
    """One would be read in place of the other: the token of a caller in place of the gateway's."""
    secrets = "{ONE: {file: one.txt}, TWO: {file: two.txt}}"
    chart = compiled(f"name: x\nagents:\n  a: {{module: agents.scout, port: 1, secrets: {secrets}}}\n")
    both = {"one-txt": {"content": "first", "key": "k"}, "two-txt": {"content": "second", "key": "k"}}
    assert "secrets.two-txt.key: secrets.one-txt has the key k too" in chart.refused({"secrets": both})
    both["two-txt"] = {"content": "second", "key": "one-txt"}
    both["one-txt"] = {"content": "first"}
    assert "secrets.two-txt.key: secrets.one-txt has the key one-txt too" in chart.refused({"secrets": both})
    same = {name: {"content": "one", "key": "k"} for name in both}
    assert chart.render({"secrets": same}).one("Secret", "pallas-secrets")["data"].keys() == {"k"}


@pytest.mark.parametrize(
    ("overlay", "rolled"),
    [
        ({"project": {"config": {"agents.yaml": "changed"}}}, {"registry"}),
        ({"agents": {"right": {"replicas": 2}}}, {"right", "registry"}),
        (
            {"project": {"config": {"fastagent.config.yaml": "a: b"}}},
            {"top", "left-one", "right", "tools", "model", "registry"},
        ),
        ({"project": {"code": {"agents/new.py": ""}}}, set()),
        ({"agents": {"top": {"fingerprint": "other"}}}, {"top"}),
        ({"agents": {"right": {"env": {"A": "b"}}}}, {"right"}),
    ],
)
def test_a_change_rolls_the_pods_it_concerns(graph, plain, overlay: dict[str, Any], rolled: set[str]) -> None:
    after = graph.render(overlay).of("Deployment")
    before = plain.of("Deployment")
    changed = {name for name, item in after.items() if item["spec"]["template"] != before[name]["spec"]["template"]}
    assert changed == rolled


def test_yaml_words_as_values_stay_text(graph) -> None:
    made = graph.render({"defaults": {"annotations": {"a": "yes", "b": "1e3"}, "labels": {"c": "0123"}}})
    meta = made.one("Deployment", "top")["spec"]["template"]["metadata"]
    assert (meta["annotations"]["a"], meta["annotations"]["b"], meta["labels"]["c"]) == ("yes", "1e3", "0123")
    assert yaml.safe_load(yaml.safe_dump(meta)) == meta

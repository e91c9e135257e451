"""Agents that register, in the chart: where registrations are kept, how many registries there are, who may be asked."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_gen import verify
from pallas_gen.targets.helm import read_back

from .conftest import helm_says

pytestmark = pytest.mark.helm

WRITTEN = """\
name: Graph
agents:
  scout: {module: agents.scout, port: 8101}
registry:
  registration:
    tokens: {partners: {file: partners.token}}
    store: true
    reach: [10.20.0.0/16]
"""
GIVEN = ("--set", "secrets.partners-token.content=x")


@pytest.fixture(scope="module")
def chart(compiled):
    return compiled(WRITTEN, partners__token="canary-0123456789")


def volume(made) -> dict[str, Any]:
    (found,) = [each for each in made.pod("registry")["volumes"] if each["name"] == "state"]
    return found


def test_registrations_are_kept_in_a_claim_that_outlives_the_release(chart) -> None:
    made = chart.render(None, *GIVEN)
    claim = made.one("PersistentVolumeClaim", "registry-state")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert volume(made)["persistentVolumeClaim"] == {"claimName": "registry-state"}
    assert {"name": "state", "mountPath": "/state"} in made.main("registry")["volumeMounts"]
    assert made.main("registry")["securityContext"]["readOnlyRootFilesystem"] is True
    assert made.one("Deployment", "registry")["spec"]["strategy"] == {"type": "Recreate"}
    assert made.one("Deployment", "scout")["spec"]["strategy"]["type"] == "RollingUpdate"
    assert not any(each["name"] == "state" for each in made.pod("scout")["volumes"])
    assert list(verify.differences(chart.plan, read_back.workloads(made.objects, chart.plan), "chart")) == []


def test_a_registry_with_which_agents_register_is_not_replaced_for_a_change_of_the_file(chart, compiled) -> None:
    """Two cannot have its file, and one without a file forgets who registered."""
    changed = {"project": {"config": {"agents.yaml": "changed"}}}
    kept_in_memory = compiled(WRITTEN.replace("    store: true\n", ""), partners__token="canary-0123456789")
    for fleet in (chart, kept_in_memory):
        before = fleet.render(None, *GIVEN)
        assert fleet.render(changed, *GIVEN).pod("registry") == before.pod("registry")
        assert "checksum/config" not in _annotations(before)


def _annotations(made) -> dict[str, str]:
    found: dict[str, str] = made.one("Deployment", "registry")["spec"]["template"]["metadata"].get("annotations", {})
    return found


def test_an_agent_keeps_its_conversations_the_same_way(compiled) -> None:
    chart = compiled(WRITTEN.split("registry:", maxsplit=1)[0].replace("8101}", "8101, keep_conversations: true}"))
    made = chart.render()
    assert made.of("PersistentVolumeClaim").keys() == {"scout-state"}
    assert {"name": "state", "mountPath": "/state"} in made.main("scout")["volumeMounts"]
    assert made.one("Deployment", "scout")["spec"]["strategy"] == {"type": "Recreate"}
    assert list(verify.differences(chart.plan, read_back.workloads(made.objects, chart.plan), "chart")) == []


def test_what_outlives_the_release_is_said_at_the_install(chart) -> None:
    done = helm_says("install", [chart.folder / "values.yaml"], "--dry-run=client", *GIVEN)
    assert done.stdout.endswith("kubectl -n space delete pvc registry-state\n"), done.stderr
    own = (*GIVEN, "--set", "registry.state.existingClaim=mine")
    assert "delete pvc" not in helm_says("install", [chart.folder / "values.yaml"], "--dry-run=client", *own).stdout


def test_how_a_registry_that_stays_follows_at_once_is_said_where_there_is_one(chart) -> None:
    touch = (
        "  kubectl -n space annotate pod -l app.kubernetes.io/instance=rel,app.kubernetes.io/component=registry"
        " --overwrite io.pallas-kit/touched=$(date +%s)\n"
    )
    assert touch in helm_says("install", [chart.folder / "values.yaml"], "--dry-run=client", *GIVEN).stdout
    assert "annotate" not in helm_says("install", [], "--dry-run=client").stdout


def test_the_token_reaches_the_registry_alone(chart) -> None:
    made = chart.render(None, *GIVEN)
    (source,) = next(each for each in made.pod("registry")["volumes"] if each["name"] == "secrets")["projected"][
        "sources"
    ]
    assert source["secret"]["items"] == [{"key": "partners-token", "path": "registration-partners"}]
    assert not any(each["name"] == "secrets" for each in made.pod("scout")["volumes"])


def test_a_new_token_replaces_no_registry_which_reads_it_by_itself(chart) -> None:
    before, after = (chart.render(None, "--set", f"secrets.partners-token.content={token}") for token in "xy")
    assert before.one("Secret", "pallas-secrets") != after.one("Secret", "pallas-secrets")
    assert before.one("Deployment", "registry") == after.one("Deployment", "registry")


def test_the_claim_is_what_the_values_say(chart) -> None:
    made = chart.render({"registry": {"state": {"size": "2Gi", "storageClass": "fast"}}}, *GIVEN)
    spec = made.one("PersistentVolumeClaim", "registry-state")["spec"]
    assert (spec["storageClassName"], spec["resources"]["requests"]["storage"]) == ("fast", "2Gi")
    given = chart.render({"registry": {"state": {"existingClaim": "mine"}}}, *GIVEN)
    assert (volume(given)["persistentVolumeClaim"], given.of("PersistentVolumeClaim")) == ({"claimName": "mine"}, {})
    pod = chart.render({"registry": {"state": {"persistent": False}}}, *GIVEN)
    assert (volume(pod)["emptyDir"], pod.of("PersistentVolumeClaim")) == ({"sizeLimit": "1Gi"}, {})
    limits, before = (each.main("registry")["resources"]["limits"] for each in (pod, made))
    # the kubelet counts that volume too, and would end the pod
    assert limits == {**before, "ephemeral-storage": str(int(1.25 * (1 << 30)))}
    assert before["ephemeral-storage"] == "256Mi"


@pytest.mark.parametrize("overlay", [{"replicas": 2}, {"autoscaling": {"enabled": True}}])
def test_agents_register_with_one_registry(chart, overlay: dict[str, Any]) -> None:
    done = chart.run({"registry": overlay}, *GIVEN)
    assert done.returncode != 0
    assert "/registry/" in done.stderr


def test_the_registry_may_go_where_the_file_lets_it_and_nowhere_else(chart, plain) -> None:
    made = chart.render(None, *GIVEN)
    rules = made.one("NetworkPolicy", "registry")["spec"]["egress"]
    assert [rule["to"] for rule in rules if not rule.get("ports")] == [[{"ipBlock": {"cidr": "10.20.0.0/16"}}]]
    assert all(rule.get("ports") for rule in plain.one("NetworkPolicy", "registry")["spec"]["egress"])

"""A service that keeps something, in the chart: its claim, and that there is one of it."""

from __future__ import annotations

import pytest

from pallas_gen import verify
from pallas_gen.targets.helm import read_back

from .conftest import helm_says

pytestmark = pytest.mark.helm

WRITTEN = """\
name: Graph
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [my_memory]}
services:
  my_memory: {module: agents.other, port: 8110, state: true}
"""


@pytest.fixture(scope="module")
def chart(compiled):
    return compiled(WRITTEN)


def test_it_has_a_claim_that_outlives_the_release_and_is_replaced_by_one_that_starts_after_it(chart) -> None:
    made = chart.render()
    assert made.of("PersistentVolumeClaim").keys() == {"my-memory-state"}
    claim = made.one("PersistentVolumeClaim", "my-memory-state")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert {"name": "state", "mountPath": "/state"} in made.main("my-memory")["volumeMounts"]
    assert made.one("Deployment", "my-memory")["spec"]["strategy"] == {"type": "Recreate"}
    assert list(verify.differences(chart.plan, read_back.workloads(made.objects, chart.plan), "chart")) == []
    larger = chart.render({"services": {"my_memory": {"state": {"size": "5Gi"}}}})
    spec = larger.one("PersistentVolumeClaim", "my-memory-state")["spec"]
    assert spec["resources"]["requests"]["storage"] == "5Gi"
    note = helm_says("install", [chart.folder / "values.yaml"], "--dry-run=client")
    assert note.stdout.endswith("kubectl -n space delete pvc my-memory-state\n"), note.stderr


def test_there_is_one_of_it(chart) -> None:
    assert "/services/my_memory/replicas" in chart.refused({"services": {"my_memory": {"replicas": 2}}})
    scaled = chart.refused({"agents": {"scout": {"stateless": True}}, "defaults": {"autoscaling": {"enabled": True}}})
    assert "my_memory keeps files of its own, so there is one of it" in scaled

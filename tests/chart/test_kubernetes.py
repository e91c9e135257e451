"""Five topologies against the API schemas of every Kubernetes the chart says it runs on."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

pytestmark = [pytest.mark.helm, pytest.mark.slow]

VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
CUSTOM = {"ServiceMonitor", "PrometheusRule", "HTTPRoute"}
"""Kinds that are not Kubernetes' own, so that it has no schema of them."""


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(topologies: dict[str, Any], version: str) -> None:
    for manifests in topologies.values():
        seen = {item["kind"]: item for item in manifests.objects if item["kind"] not in CUSTOM}
        # All pods differ in what their schema looks at; of the other kinds one of each says it all.
        for item in [*seen.values(), *manifests.of("Deployment").values()]:
            kubernetes_validate.validate(item, version, strict=True)


def test_the_check_sees_a_misspelt_field(topologies: dict[str, Any]) -> None:
    deployment = dict(topologies["diamond"].one("Deployment", "top"))
    deployment["spec"] = {**deployment["spec"], "replica": 1}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.34", strict=True)

"""Five topologies against the API schemas of every Kubernetes the chart says it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import kubernetes_validate
import pytest
from kubernetes_validate import utils

pytestmark = [pytest.mark.helm, pytest.mark.slow]

VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
CUSTOM = {"ServiceMonitor", "PrometheusRule", "HTTPRoute"}
"""Kinds that are not Kubernetes' own, so that it has no schema of them."""


def shape(value: object) -> object:
    """Return what a schema looks at: the keys, the types, and words that may be one of a fixed set (TCP, ClusterIP)."""
    if isinstance(value, dict):
        return frozenset((key, shape(item)) for key, item in value.items())
    if isinstance(value, list):
        return frozenset(map(shape, value))
    return value if isinstance(value, str) and re.fullmatch("[A-Z][A-Za-z]+", value) else type(value).__name__


def distinct(objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one object of each shape."""
    return list({shape(item): item for item in objects}.values())


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Have each file of schemas read once: the library reads all definitions of a version anew for each object."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(utils, "schema_contents", cache(utils.schema_contents))
        yield


@pytest.fixture(scope="module")
def objects(topologies: dict[str, Any]) -> list[dict[str, Any]]:
    """One of each shape that the chart renders, of the kinds that Kubernetes has a schema of."""
    rendered = [item for manifests in topologies.values() for item in manifests.objects]
    return distinct(item for item in rendered if item["kind"] not in CUSTOM)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_object_of_every_shape_is_valid(objects: list[dict[str, Any]], version: str) -> None:
    for item in objects:
        kubernetes_validate.validate(item, version, strict=True)


def test_different_objects_of_a_kind_are_shapes_of_their_own(objects: list[dict[str, Any]]) -> None:
    """A policy that allows and one that denies, a Service with an address and a headless one."""
    specs: dict[str, list[Any]] = {}
    for item in objects:
        specs.setdefault(item["kind"], []).append(item.get("spec"))
    assert {"ingress" in spec for spec in specs["NetworkPolicy"]} == {True, False}
    assert {spec.get("clusterIP") for spec in specs["Service"]} == {None, "None"}
    assert len(specs["Deployment"]) > 2


def test_a_shape_is_more_than_its_keys() -> None:
    tcp, udp, number = ({"kind": "Service", "ports": [{"protocol": text}]} for text in ("TCP", "UDP", 6))
    assert len(distinct([tcp, udp, number, dict(tcp)])) == 3


def test_the_check_sees_a_misspelt_field(topologies: dict[str, Any]) -> None:
    deployment = dict(topologies["diamond"].one("Deployment", "top"))
    deployment["spec"] = {**deployment["spec"], "replica": 1}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.34", strict=True)

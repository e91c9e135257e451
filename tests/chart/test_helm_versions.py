"""Helm 3 renders, lints and refuses what Helm 4 does: each of the other tests holds for both."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Chart, Object

pytestmark = [pytest.mark.helm, pytest.mark.versions, pytest.mark.slow]

REFUSED: list[Object] = [
    {"agents": {"top": {"replicas": 0}}},
    {"agents": {"top": {"replicas": 2}}},
    {"ingress": {"enabled": True}},
    {"httpRoute": {"enabled": True}},
    {"secrets": {"x": {}}},
    {"typo": 1},
    {"defaults": {"autoscaling": None}},
    {"agents": {"left-one": {"replicas": 1}}},
]


@pytest.fixture
def with_helm_3(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes `helm` Helm 3 for the rest of the test."""
    folder = subprocess.run([root / "tools" / "versions"], check=True, capture_output=True, text=True).stdout.strip()

    def switch() -> None:
        assert version().startswith("v4.")
        monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
        assert version().startswith("v3.22.")

    return switch


def version() -> str:
    command = ["helm", "version", "--template", "{{.Version}}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_it_renders_the_same(topology_fleets, topologies, graph: Chart, plain, with_helm_3) -> None:
    with_helm_3()
    for name, fleet in topology_fleets.items():
        assert fleet.render().objects == topologies[name].objects, name
    assert graph.render().objects == plain.objects


def test_it_lints_the_chart(graph: Chart, with_helm_3) -> None:
    with_helm_3()
    done = graph.lint()
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_refuses_the_same(graph: Chart, with_helm_3) -> None:
    before = [graph.refused(values) for values in REFUSED]
    with_helm_3()
    assert [graph.refused(values) for values in REFUSED] == before

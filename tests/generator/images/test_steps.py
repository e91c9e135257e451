"""The commands that make images and bring them where they are run."""

from __future__ import annotations

import shlex

import pytest

from pallas_contract import __version__
from pallas_contract.fleet import images
from pallas_contract.fleet.model import Images
from pallas_gen.images import steps
from pallas_gen.images.docker import CLUSTERS, Cluster

LOADED = {
    "kind": "kind load docker-image a/pallas-agent:2",
    "minikube": "minikube image load a/pallas-agent:2",
    "k3d": "k3d image import a/pallas-agent:2",
}


def lines(**options) -> list[str]:
    names = images.resolve(Images(agent="theirs:1"), "a/{name}:2")
    builds = steps.base_images(names, "context")
    made = steps.steps(builds[:1], [build.image for build in builds], **options)
    return [shlex.join(step.command) for step in made]


def test_an_image_is_built_from_the_context_with_the_kits_version() -> None:
    assert lines(options=("--quiet",)) == [
        "docker buildx build --load --file context/Dockerfile.agent --tag a/pallas-agent:2 "
        f"--build-arg VERSION={__version__} --quiet context"
    ]


def test_all_are_pushed_also_those_that_were_here() -> None:
    assert lines(push=True)[1:] == ["docker push --quiet a/pallas-agent:2", "docker push --quiet a/pallas-registry:2"]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_all_are_loaded_into_a_cluster(cluster: Cluster) -> None:
    assert lines(cluster=cluster)[1:] == [
        LOADED[cluster],
        LOADED[cluster].replace("pallas-agent", "pallas-registry"),
    ]

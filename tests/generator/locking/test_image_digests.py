"""Digests of images: by their names, by docker, or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from pallas_gen.locking import image_digests
from pallas_gen.running.tool import Done


def docker(**images: object):
    """Stand in for `docker image inspect`; `images` maps names without their marks to documents."""

    def run(command: Sequence[str]) -> Done | None:
        assert command[:3] == ["docker", "image", "inspect"]
        name = command[-1].translate(str.maketrans("", "", ":/.-"))
        return Done(0, json.dumps(images[name])) if name in images else Done(1, errors="No such image")

    return run


def test_a_digest_in_the_name_needs_no_docker() -> None:
    assert image_digests.digests(["a/b@sha256:1", "c:1"], lambda command: None) == {"a/b@sha256:1": "sha256:1"}


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("ghcr.io/a/b:1", "ghcr.io/a/b"),
        ("localhost:5000/b:1", "localhost:5000/b"),
        ("redis:8", "docker.io/library/redis"),
        ("redis", "redis"),
    ],
)
def test_the_digest_of_a_registry_counts_more_than_the_id_here(name: str, repository: str) -> None:
    document = {"Id": "sha256:0", "RepoDigests": ["other/b@sha256:2", f"{repository}@sha256:1"]}
    key = name.translate(str.maketrans("", "", ":/.-"))
    assert image_digests.digests([name], docker(**{key: document})) == {name: "sha256:1"}


def test_an_image_that_was_built_here_has_its_id_and_an_unknown_one_nothing() -> None:
    built = {"Id": "sha256:0", "RepoDigests": ["other/pallas@sha256:2"]}
    assert image_digests.digests(["pallas:1", "gone:1"], docker(pallas1=built)) == {"pallas:1": "sha256:0"}
    assert image_digests.digests(["pallas:1"], docker(pallas1=[])) == {}

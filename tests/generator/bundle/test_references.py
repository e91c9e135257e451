"""Images that compose and the chart name, and what leads out of a bundle."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from pallas_gen.bundle import references

COMPOSE = "services: {a: {image: kit:1}, b: {image: 'redis'}, c: {build: .}}\n"
VALUES = """\
images: {agent: {repository: kit, tag: "1"}, registry: {registry: "r:5", repository: a/kit, digest: "sha256:0"}}
agents: {a: {}, b: {image: {repository: other}}}
services: {c: {foreign: true, image: {repository: redis, tag: "8"}}}
registry: {}
"""
CHART = {PurePosixPath("values.yaml"): VALUES, PurePosixPath("Chart.yaml"): "name: pallas\n"}
IMAGES = dict.fromkeys(("kit:1", "redis:latest", "redis:8", "other:1", "r:5/a/kit@sha256:0"), "id")


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("redis", "redis:latest"),
        ("docker.io/library/redis:8", "redis:8"),
        ("docker.io/a/b", "a/b:latest"),
        ("localhost:5000/b", "localhost:5000/b:latest"),
        ("a@sha256:0", "a@sha256:0"),
    ],
)
def test_the_name_of_an_image_is_the_one_that_docker_lists(image: str, name: str) -> None:
    assert references.tagged(image) == name


def test_all_images_are_found() -> None:
    assert references.of_compose(COMPOSE) == {"kit:1", "redis"}
    assert references.of_chart(CHART) == {"kit:1", "other:1", "redis:8", "r:5/a/kit@sha256:0"}
    assert list(references.problems(COMPOSE, CHART, IMAGES)) == []


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_that_is_not_there_is_named(image: str) -> None:
    others = {name: digest for name, digest in IMAGES.items() if name != image}
    assert {problem.message for problem in references.problems(COMPOSE, CHART, others)} == {
        f"{image} is not in the bundle"
    }


def test_a_chart_that_another_one_is_fetched_for_is_none() -> None:
    lines = [{"name": "db", "repository": "https://charts.example"}, {"name": "near", "repository": "file://near"}]
    chart = CHART | {PurePosixPath("Chart.yaml"): f"name: pallas\ndependencies: {lines}\n"}
    (problem,) = references.problems(COMPOSE, chart, IMAGES)
    assert problem.message == "db comes from https://charts.example"


def test_an_image_named_by_its_digest_cannot_be_loaded_by_it() -> None:
    assert [problem.where.file for problem in references.unloadable(IMAGES)] == ["r:5/a/kit@sha256:0"]

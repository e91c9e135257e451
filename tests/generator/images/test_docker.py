"""What docker is asked; the commands that build, push and load are in test_steps.py."""

from __future__ import annotations

from typing import get_args

from pallas_gen.images import docker


def test_every_cluster_of_the_option_is_in_the_list() -> None:
    assert get_args(docker.Cluster) == docker.CLUSTERS


def test_a_lock_is_never_taken_from_the_cache() -> None:
    command = docker.export("d/Dockerfile.lock", "d", "out", ("--secret", "id=pip,src=x"))
    assert {"--no-cache", "type=local,dest=out", "id=pip,src=x"} <= set(command)
    assert command[-1] == "d"


def test_the_question_for_an_image_names_it_last() -> None:
    assert docker.inspect("a:1")[-1] == "a:1"

"""What docker is asked; the commands that build, push and load are in test_steps.py."""

from __future__ import annotations

from typing import get_args

from pallas_gen.images import docker


def test_every_cluster_of_the_option_is_in_the_list() -> None:
    assert get_args(docker.Cluster) == docker.CLUSTERS


def test_the_question_for_an_image_names_it_last() -> None:
    assert docker.inspect("a:1")[-1] == "a:1"

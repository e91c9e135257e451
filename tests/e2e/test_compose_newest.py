"""A fleet by compose 5 and runc; other tests use what this machine has: an older compose, and crun where it can be."""

from __future__ import annotations

import subprocess

import docker
import pytest

from pallas_testing.fleet import Fleet

from .examples import copied_from
from .projects import edited
from .stack import Stack, running

pytestmark = [pytest.mark.docker, pytest.mark.versions]


@pytest.fixture
def newest(root, monkeypatch) -> None:
    """Make `docker compose` the newest."""
    folder = subprocess.run([root / "tools" / "versions"], check=True, capture_output=True, text=True).stdout.strip()
    monkeypatch.setenv("DOCKER_CONFIG", f"{folder}/docker")
    version = ["docker", "compose", "version", "--short"]
    assert subprocess.run(version, check=True, capture_output=True, text=True).stdout.lstrip("v").startswith("5.7.")


def test_compose_5_and_runc_start_a_fleet_for_the_tests_of_its_example_leave_it_alone_and_end_it(
    root, tmp_path, newest
) -> None:
    with running(edited(root / "examples" / "01-hello", tmp_path), runtime="runc") as fleet:
        stack = Stack(fleet)
        runtimes = {container.attrs["HostConfig"]["Runtime"] for container in stack.containers().values()}
        assert runtimes == {"runc"}
        for test in copied_from("01-hello").values():
            test(Fleet(fleet))
        before = {name: container.id for name, container in stack.containers().items()}
        stack.up()
        assert {name: container.id for name, container in stack.containers().items()} == before
    engine = docker.from_env()
    label = f"com.docker.compose.project={stack.project}"
    assert engine.containers.list(all=True, sparse=True, filters={"label": label}) == []
    assert engine.networks.list(filters={"label": label}) == []
    engine.close()

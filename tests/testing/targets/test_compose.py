"""The fleet in containers: nobody else's networks, no Docker, and a whole fleet whose test is killed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest
from docker.errors import DockerException

from pallas_testing.targets import compose, table
from pallas_testing.targets.base import CannotStart, Order

VERBS = """
import os, signal
import pytest

@pytest.mark.parametrize("verb", ["pause", "remove"])
def test_verb(fleet, verb):
    getattr(fleet.faults, verb)("hello")
    assert fleet.registry.saw("hello", "ok", "error", within=120)

def test_killed(running_fleet):
    print("project", running_fleet.target.project, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def order(tmp_path: Path) -> Order:
    (tmp_path / "agents.yaml").write_text("agents: {hello: {module: a, port: 24201}}\n")
    return Order(tmp_path / "agents.yaml", tmp_path)


def test_no_docker_is_said_in_a_line(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise DockerException("no socket")

    monkeypatch.setattr(compose, "DockerClient", refuse)
    fleet = table.target("compose", order)
    with pytest.raises(CannotStart, match="no Docker to start containers with: no socket"):
        fleet.start()
    fleet.stop()


def test_a_fleet_has_networks_that_overlap_with_no_other(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    subnets = ["10.213.0.0/17", "fd00::/64", "172.17.0.0/16"]
    networks: list[Any] = [SimpleNamespace(attrs={"IPAM": {"Config": [{"Subnet": subnet}]}}) for subnet in subnets]
    networks += [SimpleNamespace(attrs={"IPAM": {"Config": None}}), SimpleNamespace(attrs={})]
    engine = SimpleNamespace(networks=SimpleNamespace(list=lambda: networks))
    monkeypatch.setattr(compose, "DockerClient", lambda: SimpleNamespace(client=engine))

    def stop_here(*_: object) -> None:
        raise CannotStart("far enough")

    monkeypatch.setattr(compose.commands, "generate", stop_here)
    fleet = table.target("compose", order)
    with pytest.raises(CannotStart, match="far enough"):
        fleet.start()
    pool = re.search(r"pool: (\S+)}", fleet.file.path.read_text())
    assert pool
    assert not IPv4Network(pool[1]).overlaps(IPv4Network(subnets[0]))
    fleet.stop()


def test_two_fleets_are_two_projects(order: Order) -> None:
    names = {compose.Compose(order).project for _ in range(2)}
    assert len(names) == 2


@pytest.mark.docker
def test_a_fleet_is_tested_disturbed_and_gone_when_its_test_is_killed(tmp_path: Path, root: Path) -> None:
    example = shutil.copytree(root / "examples" / "01-hello", tmp_path / "hello")
    (example / "tests" / "test_verbs.py").write_text(VERBS)
    plugins = ("-p", "pallas_testing.plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vs", *plugins, "--fleet-target", "compose", "tests"],
        cwd=example,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stdout
    assert done.stdout.count("PASSED") == 4, done.stdout
    project = re.search(r"project (pallas-testing-\w+)", done.stdout)
    assert project, done.stdout
    engine = docker.from_env()
    label = {"label": f"com.docker.compose.project={project[1]}"}
    end = time.monotonic() + 120
    while engine.containers.list(all=True, filters=label) or engine.networks.list(filters=label):
        assert time.monotonic() < end, f"{project[1]} is still there"
        time.sleep(0.2)
    engine.close()

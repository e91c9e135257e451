"""A user's test on the target `cluster`: examples/01-hello, disturbed, and gone when the test is killed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .release import call, until

pytestmark = pytest.mark.cluster

VERBS = """
import os, signal
import pytest
from pallas_testing.fleet import CannotDisturb

@pytest.mark.parametrize("verb", ["kill", "restart", "remove"])
def test_verb(fleet, verb):
    getattr(fleet.faults, verb)("hello")
    if verb == "remove":
        assert fleet.registry.saw("hello", "ok", "error", within=120)

def test_partition(fleet):
    fleet.faults.partition("registry", "hello")
    assert fleet.registry.saw("hello", "ok", "error", within=120)

def test_scaled(fleet):
    fleet.faults.scale("hello", 2)
    two = 'pallas_agent_replicas{agent="hello"} 2.0'
    fleet.wait_for(lambda: two in fleet.registry.get("/metrics").text, within=120)

def test_refused(fleet):
    with pytest.raises(CannotDisturb, match="pause: not on cluster"):
        fleet.faults.pause("hello")
    assert fleet.no_secret("planted-nowhere")
    assert "hello" in fleet.logs("hello")

def test_killed(running_fleet):
    print("namespace", running_fleet.target.namespace, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_fleet_is_tested_disturbed_and_gone_when_its_test_is_killed(
    kubernetes: None, tmp_path: Path, root: Path
) -> None:
    example = shutil.copytree(root / "examples" / "01-hello", tmp_path / "hello")
    (example / "tests" / "test_verbs.py").write_text(VERBS)
    plugins = ("-p", "pallas_testing.plugin", "-p", "no:cacheprovider")
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUNBUFFERED": "1"}
    env.pop("PALLAS_LOAD_IMAGES", None)  # the fixture has brought them
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vs", *plugins, "--fleet-target", "cluster", "tests"],
        cwd=example,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stdout
    assert done.stdout.count("PASSED") == 8, done.stdout
    namespace = re.search(r"namespace (pallas-testing-\w+)", done.stdout)
    assert namespace, done.stdout
    gone = ("kubectl", "get", "namespace", namespace[1], "--ignore-not-found")
    until(lambda: not call(*gone).stdout, f"{namespace[1]} is gone", within=180)

"""A user's tests on the target `cluster`: a fleet that is disturbed in every way, and gone when its test is killed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .release import call

pytestmark = pytest.mark.cluster

VERBS = """
import os, signal, subprocess
import pytest
from pallas_testing.fleet import AgentFailed, CannotDisturb

def test_restricted(running_fleet):
    command = ["kubectl", "label", "namespace", running_fleet.target.namespace]
    subprocess.run([*command, "pod-security.kubernetes.io/enforce=restricted"], check=True)

def test_paused(fleet):
    fleet.faults.pause("back")
    assert fleet.registry.saw("back", "ok", "error", within=240)
    fleet.faults.resume("back")
    assert fleet.registry.saw("back", "ok", "error", "ok", within=240)

def test_slow_and_cut(fleet):
    assert fleet.agent("front").ask("good morning").text.endswith("back: good morning")
    fleet.faults.slow("front", "back", latency=1.0, jitter=0.1)
    answer = fleet.agent("front").ask("good morning")
    assert answer.calls[0].seconds > 1.8
    assert answer.text.endswith("back: good morning")
    with pytest.raises(CannotDisturb, match="slow: registry is no agent with back in its depends_on"):
        fleet.faults.slow("registry", "back", latency=1.0)
    fleet.faults.cut("front", "back", after_bytes=10)
    try:
        assert "back: good" not in fleet.agent("front").ask("good morning").text
    except AgentFailed:
        pass

def test_partition(fleet):
    fleet.faults.partition("registry", "back")
    assert fleet.registry.saw("back", "ok", "error", within=240)

def test_provider(fleet):
    fleet.faults.provider.rate_limit(retry_after=0.1)
    with pytest.raises(AgentFailed):
        fleet.agent("front").ask("good morning")

def test_a_service(fleet):
    fleet.faults.kill("model")

def test_all_is_well_again(fleet):
    assert fleet.agent("front").ask("good morning").text.endswith("back: good morning")

def test_removed(fleet):
    fleet.faults.remove("back")
    assert fleet.registry.saw("back", "ok", "error", within=240)

def test_scaled(fleet):
    fleet.faults.scale("back", 2)
    two = 'pallas_agent_replicas{agent="back"} 2.0'
    fleet.wait_for(lambda: two in fleet.registry.get("/metrics").text, within=240)

def test_secret(fleet, running_fleet):
    fleet.faults.rotate_secret("key.txt", "second\\n")
    assert running_fleet.target.execute("back", "print(open('/run/secrets/KEY').read())").strip() == "second"
    assert fleet.no_secret("second-to-none")

def test_disk(fleet, running_fleet):
    fleet.faults.fill_disk("back")
    with pytest.raises(CannotDisturb, match="No space left on device"):
        running_fleet.target.execute("back", "open('/tmp/x', 'w').write('x' * (1 << 20))")

def test_undone(fleet, running_fleet):
    assert running_fleet.target.execute("back", "print(open('/run/secrets/KEY').read())").strip() == "first"
    running_fleet.target.execute("back", "open('/tmp/x', 'w').write('x' * (1 << 20))")
    assert "back" in fleet.logs("back")

def test_killed(running_fleet):
    print("namespace", running_fleet.target.namespace, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.timeout(1200)  # a dozen roll-outs, one after the other: five minutes on a machine with much else to do
def test_a_fleet_is_tested_disturbed_and_gone_when_its_test_is_killed(
    kubernetes: None, tmp_path: Path, root: Path
) -> None:
    example = shutil.copytree(root / "tests" / "testing" / "targets" / "disturbed", tmp_path / "disturbed")
    (example / "test_verbs.py").write_text(VERBS)
    plugins = ("-p", "pallas_testing.plugin", "-p", "no:cacheprovider")
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUNBUFFERED": "1"}
    env.pop("PALLAS_LOAD_IMAGES", None)  # the fixture has brought them
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vsx", *plugins, "--fleet-target", "cluster", "test_verbs.py"],
        cwd=example,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stdout
    assert done.stdout.count("PASSED") == 12, done.stdout
    namespace = re.search(r"namespace (pallas-testing-\w+)", done.stdout)
    assert namespace, done.stdout
    call("kubectl", "wait", "--for=delete", f"namespace/{namespace[1]}", "--timeout=180s")

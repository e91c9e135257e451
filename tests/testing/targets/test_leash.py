"""What a test has started ends with it, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pallas_testing.targets import leash
from pallas_testing.targets.leash import Leash

PYTHON = [sys.executable, "-I", "-c"]
WAIT = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
DEAF = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {WAIT}"
TEST = """
import json, os, sys
from pathlib import Path
from pallas_testing.targets.leash import Leash
order = json.loads(sys.argv[1])
leash = Leash(order, cwd=Path.cwd(), env=os.environ, output=Path("output"))
print("ready", flush=True)
sys.stdin.read()
"""


def started(tmp_path: Path, code: str, *clean: str) -> Leash:
    order = leash.Order(run=[*PYTHON, code], clean=[[*PYTHON, step] for step in clean], grace=0.2)
    return Leash(order, cwd=tmp_path, env=os.environ, output=tmp_path / "output")


def running_pid(tmp_path: Path) -> int:
    while not (text := (tmp_path / "output").read_text()).endswith("\n"):
        pass
    return int(text.splitlines()[0])


@pytest.mark.parametrize("code", [WAIT, DEAF])
def test_it_ends_what_it_runs_and_cleans_up(tmp_path: Path, code: str) -> None:
    held = started(tmp_path, code, "open('cleaned', 'w')")
    pid = running_pid(tmp_path)
    assert held.code is None
    held.end()
    assert not Path(f"/proc/{pid}").exists()
    assert (tmp_path / "cleaned").exists()


def test_it_does_not_clean_what_the_test_has_cleaned(tmp_path: Path) -> None:
    held = started(tmp_path, WAIT, "open('cleaned', 'w')")
    held.end(cleaned=True)
    assert not (tmp_path / "cleaned").exists()


def test_it_ends_with_its_command_and_says_how(tmp_path: Path) -> None:
    held = started(tmp_path, "raise SystemExit(3)", "open('cleaned', 'w')")
    while held.code is None:
        pass
    held.end()
    held.end()
    assert held.code == 3
    assert not (tmp_path / "cleaned").exists()


def test_without_a_command_it_cleans_up_when_the_test_is_gone(tmp_path: Path) -> None:
    order = leash.Order(run=[], clean=[[*PYTHON, "open('cleaned', 'w')"]], grace=0.2)
    held = Leash(order, cwd=tmp_path, env=os.environ, output=tmp_path / "output")
    assert held.code is None
    held.end()
    assert (tmp_path / "cleaned").exists()


def test_a_killed_test_leaves_nothing(tmp_path: Path) -> None:
    order = {"run": [*PYTHON, WAIT], "clean": [[*PYTHON, "open('cleaned', 'w')"]], "grace": 5}
    with subprocess.Popen(
        [sys.executable, "-c", TEST, json.dumps(order)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as test:
        assert test.stdout is not None
        test.stdout.readline()
        pid = running_pid(tmp_path)
        test.send_signal(signal.SIGKILL)
    while not (tmp_path / "cleaned").exists():
        pass
    assert not Path(f"/proc/{pid}").exists()

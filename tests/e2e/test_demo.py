"""`make demo ARGS=--once`, the first command of the README, as a stranger runs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_the_demo_shows_a_delegation_and_ends_by_itself(root):
    command = [sys.executable, "tools/demo.py", "--once"]
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(command, check=False, cwd=root, env=env, capture_output=True, text=True, timeout=400)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "research/research__research: completed" in said
    assert "Tech Research, asking from 127.0.0.1" in said
    assert "http://127.0.0.1:24100" in said or "http://localhost:24100" in said
    listening = subprocess.run(["ss", "-ltn"], check=False, capture_output=True, text=True, timeout=30).stdout
    assert ":24101 " not in listening

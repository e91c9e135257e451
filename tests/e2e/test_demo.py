"""`make demo ARGS=--once`, the first command of the README, as a stranger runs it, on ports that nobody else has."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest

from .projects import copy_example

pytestmark = pytest.mark.slow


def test_the_demo_shows_a_delegation_and_ends_by_itself(root, tmp_path):
    config = copy_example(root / "examples" / "02-pallas", tmp_path)
    command = [sys.executable, "tools/demo.py", "--once", "--config", config]
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(command, check=False, cwd=root, env=env, capture_output=True, text=True, timeout=400)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "research/research__research: completed" in said
    assert "Tech Research, asking from 127.0.0.1" in said
    ports = [int(port) for port in re.findall(r"port: (\d+)", config.read_text())]
    assert len(ports) == 10
    assert f"http://127.0.0.1:{ports[0]}" in said
    assert all(re.search(rf"\b{port}\s+\(", said) for port in ports)
    for port in ports:
        with socket.socket() as caller:
            assert caller.connect_ex(("127.0.0.1", port)) != 0, f"somebody still listens on {port}"

"""The program, as `pallas` and a container start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.gateway.door import OWN, UI

COMMAND = [sys.executable, "-P", "-m", "pallas_gateway"]
FLEET = """\
name: doors
access: {tokens: {ui: {file: ui.txt}, gateway: {file: gateway.txt}}}
gateway: {agents: [scout]}
agents:
  scout: {card: a.md, port: 1}
"""


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    for name, content in {"agents.yaml": FLEET, "ui.txt": UI, "gateway.txt": OWN}.items():
        (tmp_path / name).write_text(content)
    env = {**os.environ, "PALLAS_BIND": "127.0.0.1:0"}
    refused = subprocess.run(COMMAND, cwd="/", env=env, check=False, capture_output=True, text=True, timeout=120)
    assert (refused.returncode, "agents.yaml" in refused.stderr, "Traceback" in refused.stderr) == (2, True, False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        fd = listener.fileno()
        env["PALLAS_LISTEN_FD"] = str(fd)
        with subprocess.Popen(
            COMMAND, cwd=tmp_path, env=env, pass_fds=[fd], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert (ready["event"], ready["agents"], ready["service"]) == ("ready", ["scout"], "gateway")
            call = urllib.request.Request(f"http://127.0.0.1:{port}/agents/scout/mcp", method="POST")
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(call, timeout=60)
            call.add_header("authorization", f"Bearer {UI}")
            call.data = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message"}}'
            with urllib.request.urlopen(call, timeout=60) as reply:
                assert json.load(reply)["error"]["data"]["reason"] == "unreachable"
            line = json.loads(process.stdout.readline())
            shown = {key: line[key] for key in ("agent", "caller", "method", "name", "outcome", "status")}
            assert shown == {
                "agent": "scout",
                "caller": "ui",
                "method": "tools/call",
                "name": "send_message",
                "outcome": "unreachable",
                "status": 200,
            }
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
            assert process.wait(60) == 0
            assert UI not in rest

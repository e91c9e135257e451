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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gateway.door import OWN, UI

COMMAND = [sys.executable, "-P", "-m", "pallas_gateway"]
FLEET = """\
name: doors
access: {{tokens: {{ui: {{file: ui.txt}}, gateway: {{file: gateway.txt}}}}}}
gateway: {{agents: [scout], tenants: {{acme: {{callers: [ui]}}}}}}
agents:
  scout: {{card: a.md, port: {port}}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A fleet whose agent refuses connections."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and never listens
        files = {"agents.yaml": FLEET.format(port=nobody.getsockname()[1]), "ui.txt": UI, "gateway.txt": OWN}
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        yield tmp_path


@contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield the gateway as a process, and its URL; the socket is the parent's, as with `pallas`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        env = {**os.environ, "PALLAS_LISTEN_FD": str(listener.fileno())}
        process = subprocess.Popen(
            COMMAND, cwd=folder, env=env, pass_fds=[listener.fileno()], stdout=subprocess.PIPE, text=True
        )
        try:
            yield process, f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            process.kill()
            process.communicate()


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(project: Path) -> None:
    with started(project) as (process, url):
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["event"], ready["agents"], ready["service"]) == ("ready", ["scout"], "gateway")
        call = urllib.request.Request(f"{url}/agents/scout/mcp", method="POST")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(call, timeout=60)
        call.add_header("authorization", f"Bearer {UI}")
        call.data = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message"}}'
        with urllib.request.urlopen(call, timeout=60) as reply:
            assert json.load(reply)["error"]["data"]["reason"] == "unreachable"
        line = json.loads(process.stdout.readline())
        shown = ("agent", "caller", "method", "name", "outcome", "status")
        assert [line[key] for key in shown] == ["scout", "ui", "tools/call", "send_message", "unreachable", 200]
        body = b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"system-agents://list"}}'
        headers = {"authorization": f"Bearer {UI}", "content-type": "application/json", "accept": "*/*"}
        read = urllib.request.Request(f"{url}/mcp", body, headers)
        with urllib.request.urlopen(read, timeout=60) as reply:
            assert json.loads(json.load(reply)["result"]["contents"][0]["text"])[0]["uri"] == "agentlet://scout"
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(60) == 0
        assert [json.loads(line)["event"] for line in rest.splitlines()] == ["call", "draining"]
        assert UI not in rest


@pytest.mark.slow
def test_what_the_user_wrote_is_refused_in_words(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("agents.yaml")
    assert "Traceback" not in done.stderr

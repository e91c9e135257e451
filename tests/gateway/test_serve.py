"""The program, as `pallas` and a container start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from pallas_contract.documents import audit_check
from tests.gateway.door import OWN, UI
from tests.gateway.state import stores

COMMAND = [sys.executable, "-P", "-m", "pallas_gateway"]
KEY = "audit-0123456789abcdef"
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
def started(folder: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield the gateway as a process, and its URL; the parent has made the socket, as `pallas` does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        env = {**os.environ, "PALLAS_LISTEN_FD": str(listener.fileno()), **variables}
        process = subprocess.Popen(
            COMMAND, cwd=folder, env=env, pass_fds=[listener.fileno()], stdout=subprocess.PIPE, text=True
        )
    # it is the program's alone now, and ends with it: so does who waits for an answer
    try:
        yield process, url
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(project: Path) -> None:
    with started(project) as (process, url):
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["event"], ready["agents"]) == ("ready", ["scout"])
        assert (ready["fleet"], ready["service"]) == ("doors", "gateway")
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
def test_no_thread_holds_up_its_end(project: Path) -> None:
    """As one does that looks up a name, for as long as nobody answers."""
    start = "import threading, time\nthreading.Thread(target=time.sleep, args=[1000]).start()\n"
    (project / "sitecustomize.py").write_text(start)
    with started(project, PYTHONPATH=str(project)) as (process, _):
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert json.loads(process.stdout.read().splitlines()[-1])["event"] == "left_behind"


def audited(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the audit, all of which follow each other; half a record at the end is none."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_bytes().splitlines(keepends=True)]
    result = audit_check.check([("audit", lines)], KEY.encode(), whole=True)
    assert [problem for problem in result.problems if problem.level == "error"] == []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


@pytest.mark.slow
def test_the_audit_is_whole_after_an_end_by_force_under_load(project: Path) -> None:
    path = project / "agents.yaml"
    text = path.read_text().replace("[ui]}", "[ui], requests: 99999/minute}")
    path.write_text(text.replace("gateway: {agents", "gateway: {audit: {key: {file: k.txt}}, agents"))
    (project / "k.txt").write_text(KEY)
    folder = project / ".pallas" / "gateway" / "audit"
    answered: list[int] = []
    enough = threading.Event()
    over = threading.Event()

    def call(url: str) -> None:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"a":1}}}'
        while not over.is_set():
            request = urllib.request.Request(f"{url}/agents/scout/mcp", body, {"authorization": f"Bearer {UI}"})
            with suppress(OSError, HTTPException), urllib.request.urlopen(request, timeout=60) as reply:
                answered.append(reply.status)
            if len(answered) >= 60:
                enough.set()

    with started(project) as (process, url), ThreadPoolExecutor(4) as callers:
        for _ in range(4):
            callers.submit(call, url)
        try:
            assert enough.wait(120)
        finally:
            process.kill()
            process.wait(60)
            over.set()
    before = audited(folder)
    decisions = [record for record in before if record["event"] == "decision"]
    assert len(decisions) >= len(answered)  # what was answered was recorded before
    with started(project) as (process, _):
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    after = audited(folder)
    assert after[: len(before)] == before
    assert [record["event"] for record in after[len(before) :]] == ["started", "stopped"]


BODY = 8 << 20
FLOOD = 20
MORE = 96 << 20
"""Bytes by which the memory may grow; the flood has 160 MiB."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads its memory from /proc")
def test_a_flood_of_large_bodies_is_told_to_come_again_and_not_kept(tmp_path: Path) -> None:
    """The agent takes connections and reads nothing, so that whatever is let in stays."""
    with socket.create_server(("127.0.0.1", 0), backlog=FLOOD) as silent:
        silent.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )  # else the kernel takes a body, and its room is free
        files = {"agents.yaml": FLEET.format(port=silent.getsockname()[1]), "ui.txt": UI, "gateway.txt": OWN}
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{"a":"%b"}}}'
        body %= b"x" * (BODY - len(body))
        statuses: list[int] = []

        def call(url: str) -> None:
            # it stays open: an end before all of the body has come would reset it, and the answer with it
            connection = HTTPConnection(url.removeprefix("http://"), timeout=300)
            with suppress(OSError, HTTPException):  # who is let in has no answer before the gateway ends
                connection.request("POST", "/agents/scout/mcp", body, {"authorization": f"Bearer {UI}"})
                statuses.append(connection.getresponse().status)
            connection.close()

        with started(tmp_path, PALLAS_MAX_BODY=str(BODY)) as (process, url), ThreadPoolExecutor(FLOOD) as callers:
            assert process.stdout is not None
            process.stdout.readline()
            before = resident(process.pid)
            for _ in range(FLOOD):
                callers.submit(call, url)
            try:
                # some are let in
                until(lambda: len(statuses) >= FLOOD - 4)
                grown = resident(process.pid) - before
            finally:
                process.kill()
                process.wait(60)
    assert set(statuses) == {503}
    assert grown < MORE


def resident(pid: int) -> int:
    """Return the bytes of memory of a process (proc_pid_statm(5))."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_what_the_user_wrote_is_refused_in_words(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("agents.yaml")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.valkey
def test_replicas_share_what_their_stores_have(project: Path) -> None:
    """Two real processes; the first is killed, and what it asked and counted is known to the second."""
    with stores.postgres() as postgres, stores.valkey() as valkey:
        (project / "postgres.url").write_text(stores.postgres_url(postgres))
        (project / "valkey.url").write_text(stores.valkey_url(valkey))
        (project / "audit.txt").write_text(KEY)
        (project / "parent.txt").write_text("parent-0123456789")
        keys = ", replicas: 2, store: {url: {file: postgres.url}}, counters: {url: {file: valkey.url}}"
        keys += ", audit: {key: {file: audit.txt}}, confirm: [{agent: scout, tools: [send_message], by: [parent]}]"
        text = (project / "agents.yaml").read_text().replace("agents: [scout]", f"agents: [scout]{keys}")
        (project / "agents.yaml").write_text(text.replace("tokens: {", "tokens: {parent: {file: parent.txt}, ", 1))
        with started(project) as (first, one), started(project) as (_, two):
            asked = said(one)
            assert asked["reason"] == "confirmation_required"
            first.kill()
            first.wait(60)
            decided = urllib.request.Request(f"{two}/confirmations/{asked['confirmation']}", method="POST")
            decided.add_header("authorization", "Bearer parent-0123456789")
            decided.add_header("content-type", "application/json")
            decided.data = b'{"decision": "approve"}'
            with urllib.request.urlopen(decided, timeout=60) as reply:
                assert json.load(reply)["state"] == "approved"
            assert said(two)["reason"] == "unreachable"  # it was passed on
            with urllib.request.urlopen(f"{two}/healthz", timeout=60) as reply:
                assert "cannot" not in json.load(reply).get("message", "")


def said(url: str) -> dict[str, Any]:
    """Return what the gateway says of a call that it does not answer."""
    call = urllib.request.Request(f"{url}/agents/scout/mcp", method="POST")
    call.add_header("authorization", f"Bearer {UI}")
    call.data = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_message","arguments":{}}}'
    with urllib.request.urlopen(call, timeout=60) as reply:
        data: dict[str, Any] = json.load(reply)["error"]["data"]
    return data

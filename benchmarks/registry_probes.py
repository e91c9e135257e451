"""Probes per CPU-second against blackbox_exporter on the same target.

Both ask one fake agent `server/discover`, each time over a new connection, and look into the answer. The deep probe is
the one that the registry makes: it calls `get_health` too. Debian: prometheus-blackbox-exporter, wrk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.method import fleet, load, servers
from benchmarks.method.report import Figure, at_least, ratio
from benchmarks.method.side_by_side import SERVER, Effort, Sample, compare

EXPORTER = "prometheus-blackbox-exporter"
BODY = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "blackbox", "version": "1"},
        }
    },
}
MODULE = {
    "prober": "http",
    "timeout": "3s",
    "http": {
        "method": "POST",
        "body": json.dumps(BODY),
        "headers": {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "server/discover",
        },
        "follow_redirects": False,
        "preferred_ip_protocol": "ip4",
        "fail_if_body_not_matches_regexp": ["2026-07-28"],
    },
}
"""What blackbox_exporter asks, as near to a probe as it comes: it matches text where a probe reads JSON."""
IN_FLIGHT = 32
OURS = """
import asyncio, sys, time, uvloop
from pallas_contract.probe.probe import Target, probe

async def main(url, deep, seconds):
    target, count, end = Target(url, deep=deep == "deep"), 0, time.monotonic() + float(seconds)
    async def ask():
        nonlocal count
        while time.monotonic() < end:
            found = await probe(target, era="2026-07-28")
            assert found.state == "ok", found
            count += 1
    began = time.process_time()
    await asyncio.gather(*(ask() for _ in range({in_flight})))
    print(count, time.process_time() - began)

uvloop.run(main(*sys.argv[1:]))
"""


def measure(effort: Effort) -> Iterator[Figure]:
    load.need(EXPORTER, "wrk")
    with fleet.fakes([fleet.address(0)]) as (port, _):
        target = f"http://{fleet.address(0)}:{port}/mcp"
        with exporter() as (home, pid):
            theirs = partial(_theirs, home, target, pid, effort.seconds)
            for kind, bar in (("plain", at_least(1)), ("deep", None)):
                ours = partial(_ours, target, kind, effort.seconds)
                what = f"{kind} probes per CPU-second: ours / blackbox_exporter"
                yield ratio(what, compare(ours, theirs, effort), bar, "per CPU-second")


def _ours(target: str, kind: str, seconds: float) -> Sample:
    script = OURS.replace("{in_flight}", str(IN_FLIGHT))
    command = ["taskset", "-c", str(SERVER), sys.executable, "-c", script, target, kind, str(seconds)]
    count, spent = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return Sample(int(count) / float(spent))


def _theirs(home: str, target: str, pid: int, seconds: float) -> Sample:
    found = load.get(f"{home}/probe?{urlencode({'module': 'mcp', 'target': target})}", seconds, pid)
    return Sample(found.cpu or 0.0)


@contextmanager
def exporter() -> Iterator[tuple[str, int]]:
    """URL and process id of a blackbox_exporter with the module `mcp`, whose probes have been seen to succeed."""
    port = servers.free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "blackbox.yml").write_text(json.dumps({"modules": {"mcp": MODULE}}))
        command = [EXPORTER, f"--config.file={folder}/blackbox.yml", f"--web.listen-address=127.0.0.1:{port}"]
        command += ["--log.level=error"]
        with servers.listening(command, folder, port, {**os.environ, "GOMAXPROCS": "1"}) as running:
            yield f"http://127.0.0.1:{port}", running.pid

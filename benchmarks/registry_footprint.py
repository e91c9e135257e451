"""Memory and CPU of watching 200 agents every 5 seconds, against Prometheus with blackbox_exporter on the same targets.

Both sides run all the time and look at the same fakes; a measurement is the CPU that one of them takes in one interval.
The registry asks each agent for its health every time, and once a minute for everything (three requests); the exporter
makes one request. Debian: prometheus, prometheus-blackbox-exporter.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks import registry_probes
from benchmarks.method import fleet, load, servers
from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import Effort, Sample, compare, spread

AGENTS, INTERVAL = 200, 5.0
MIB = 1024**2


def measure(effort: Effort) -> Iterator[Figure]:
    load.need(registry_probes.EXPORTER, "prometheus")
    addresses = [fleet.address(number) for number in range(AGENTS)]
    with ExitStack() as stack:
        port, _ = stack.enter_context(fleet.fakes(addresses))
        where = {f"a{number}": f"{address}:{port}" for number, address in enumerate(addresses)}
        ours = stack.enter_context(fleet.registry(where, INTERVAL))
        exporter, exporter_pid = stack.enter_context(registry_probes.exporter())
        home, prometheus_pid = stack.enter_context(prometheus(list(where.values()), exporter))
        ours.settled(ok=AGENTS)
        servers.until(lambda: succeeded(home) == AGENTS, pause=0.5)
        seconds = INTERVAL if not effort.quick else 1.0
        found = compare(
            partial(_spent, seconds, ours.pid), partial(_spent, seconds, exporter_pid, prometheus_pid), effort
        )
        what = f"CPU for {AGENTS} agents every {INTERVAL:g} s: registry / Prometheus and blackbox_exporter"
        yield ratio(what, found, at_most(0.35), "CPU-seconds an interval")
        theirs = fleet.resident(exporter_pid) + fleet.resident(prometheus_pid)
        held = spread([fleet.resident(ours.pid) / MIB])
        detail = f"Prometheus and blackbox_exporter {theirs / MIB:.0f} MiB"
        yield Figure(f"memory of the registry with {AGENTS} agents (RSS)", held, at_most(56), "MiB", detail=detail)


@contextmanager
def prometheus(targets: list[str], exporter: str) -> Iterator[tuple[str, int]]:
    """URL and process id of a Prometheus that asks the exporter for every target as often as the registry probes."""
    port = servers.free_port()
    relabel = [
        {"source_labels": ["__address__"], "target_label": "__param_target", "replacement": "http://$1/mcp"},
        {"source_labels": ["__param_target"], "target_label": "instance"},
        {"target_label": "__address__", "replacement": exporter.removeprefix("http://")},
    ]
    job = {
        "job_name": "agents",
        "metrics_path": "/probe",
        "params": {"module": ["mcp"]},
        "scrape_interval": f"{INTERVAL:g}s",
        "scrape_timeout": f"{INTERVAL:g}s",
        "static_configs": [{"targets": targets}],
        "relabel_configs": relabel,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))
        command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        with servers.listening(command, folder, port, {**os.environ, "GOMAXPROCS": "1"}) as running:
            yield f"http://127.0.0.1:{port}", running.pid


def succeeded(home: str) -> int:
    """How many targets Prometheus has seen the probe succeed on."""
    said = json.loads(fleet.get(f"{home}/api/v1/query?query=sum(probe_success)"))
    found = said.get("data", {}).get("result") or [{"value": [0, "0"]}]
    return int(found[0]["value"][1])


def _spent(seconds: float, *pids: int) -> Sample:
    before = sum(map(servers.cpu_seconds, pids))
    time.sleep(seconds)
    return Sample(sum(map(servers.cpu_seconds, pids)) - before)

"""Ten thousand agents every 30 s, and more often than one core can: CPU, memory, lateness of probes, false states.

The registry runs as in a container: it finds agents by DNS and asks them on port 8080. That needs a network of its own,
made by `unshare` (user namespaces, or root), a DNS server, and one process of fakes that answers on every address of
loopback. Debian: wrk.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.method import fleet, load, servers
from benchmarks.method.report import Figure
from benchmarks.method.side_by_side import LOAD, Effort, spread

AGENTS = 10_000
INTERVALS = (30.0, 5.0)
"""Seconds. The first is what docs/scale-registry.md asks for; the second shows what becomes of a registry that has too
much to do."""
PORT = 8080
"""What every agent listens on in its container."""
MIB = 1024**2
LATENESS = re.compile(r'^pallas_registry_probe_lateness_seconds_bucket\{le="([^"]+)"\} (\S+)', re.MULTILINE)

LOST = re.compile(r"^pallas_registry_lost_seconds_total (\S+)", re.MULTILINE)


def measure(effort: Effort) -> Iterator[Figure]:
    load.need("unshare", "wrk")
    agents, seconds = (200, 3.0) if effort.quick else (AGENTS, 60.0)
    for interval in INTERVALS:
        inside = [sys.executable, "-m", "benchmarks.registry_scale", str(agents), str(interval), str(seconds)]
        command = ["unshare", "--user", "--map-root-user", "--net", "--mount", *inside]
        try:
            done = subprocess.run(command, env=fleet.environment(), stdout=subprocess.PIPE, text=True, check=True)
        except subprocess.CalledProcessError as error:
            raise load.Missing(f"no network of its own: unshare ended with {error.returncode}") from None
        for what, values, unit, detail in json.loads(done.stdout):
            yield Figure(f"{agents:,} agents every {interval:g} s: {what}", spread(values), None, unit, detail=detail)


def watch(agents: int, interval: float, seconds: float) -> Iterator[tuple[str, list[float], str, str]]:
    """What, the values, their unit and a detail; inside the namespaces."""
    loopback_up()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        dns = [sys.executable, "-m", "benchmarks.method.names"]
        stack.enter_context(servers.process(dns, folder, fleet.environment(), core=LOAD))
        resolve_by(folder)
        stack.enter_context(fleet.fakes(["0.0.0.0"], port=PORT))
        began = time.monotonic()
        names = [fleet.name(number) for number in range(agents)]
        registry = stack.enter_context(fleet.started(folder, names, interval, {}))
        registry.settled(ok=agents)
        yield "all known to be well after", [time.monotonic() - began], "s", "from the start of the process"
        before, spent = registry.metrics(), servers.cpu_seconds(registry.pid)
        time.sleep(seconds)
        spent, after = servers.cpu_seconds(registry.pid) - spent, registry.metrics()
        probes = sum(_counts(after).values()) - sum(_counts(before).values())
        yield "CPU", [100 * spent / seconds], "% of a core", f"{probes / seconds:,.0f} deep probes a second"
        late = [_figure(LOST, text) for text in (before, after)]
        yield "time it did not get", [100 * (late[1] - late[0]) / seconds], "%", "pallas_registry_lost_seconds_total"
        wrong = registry.states()
        yield "called other than ok, which all are", [agents - wrong.get("ok", 0)], "agents", ""
        yield "memory (RSS)", [fleet.resident(registry.pid) / MIB], "MiB", ""
        counts = {le: count - _counts(before)[le] for le, count in _counts(after).items()}
        for share in (0.5, 0.99, 1.0):
            what = f"{share:.0%} of probes begin at most this late"
            yield what, [_quantile(counts, share)], "s", "bound of the histogram's bucket"
        yield from _faces(registry)


def _faces(registry: fleet.Registry) -> Iterator[tuple[str, list[float], str, str]]:
    """How long the answers take, one after the other, while the probes go on."""
    catalogue = f"{registry.url}{fleet.CATALOGUE}"
    size = len(fleet.get(catalogue))
    for what, url in (
        (f"catalogue of {size:,} bytes", catalogue),
        ("a page of 100 from the middle of the registry API", f"{registry.url}/v0.1/servers?limit=100&search=a05"),
        ("a search that finds nothing", f"{registry.url}/v0.1/servers?search=nowhere"),
        ("/metrics", f"{registry.url}/metrics"),
        ("the status page", f"{registry.url}/"),
    ):
        yield what, [_milliseconds(lambda url=url: fleet.get(url)) for _ in range(7)], "ms", ""  # type: ignore[misc]
    streams = [socket.create_connection(("127.0.0.1", int(registry.url.rsplit(":", 1)[1]))) for _ in range(200)]
    for stream in streams:
        stream.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
    with_streams = [_milliseconds(lambda: fleet.get(f"{registry.url}/livez")) for _ in range(7)]
    for stream in streams:
        stream.close()
    yield "/livez beside 200 event streams", with_streams, "ms", ""


def _figure(pattern: re.Pattern[str], text: str) -> float:
    found = pattern.search(text)
    return float(found[1]) if found else 0.0


def _counts(text: str) -> dict[float, float]:
    """Probes by the bound of their bucket, each in one bucket only."""
    below, found = 0.0, {}
    for bound, count in LATENESS.findall(text):
        found[float(bound)], below = float(count) - below, float(count)
    return found


def _quantile(counts: dict[float, float], share: float) -> float:
    left = share * sum(counts.values())
    for bound, count in counts.items():
        left -= count
        if left <= 0:
            return bound
    return float("inf")


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def loopback_up() -> None:
    """As `ip link set lo up` (netdevice(7)): a new network has a loopback that is down."""
    get_flags, set_flags, up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, get_flags, asked))[1]
        fcntl.ioctl(control, set_flags, struct.pack("16sh14x", b"lo", flags | up))


def resolve_by(folder: Path) -> None:
    """Put a resolv.conf of our own over the machine's, in this mount namespace only."""
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    real = os.path.realpath("/etc/resolv.conf")
    subprocess.run(["mount", "--bind", str(folder / "resolv.conf"), real], check=True)


if __name__ == "__main__":
    print(json.dumps(list(watch(int(sys.argv[1]), *map(float, sys.argv[2:])))))

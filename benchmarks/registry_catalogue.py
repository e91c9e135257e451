"""Requests per second of the catalogue against nginx with the same bytes, and of 304 against 200.

    python benchmarks/registry_catalogue.py [--rounds 7] [--seconds 2]

Needs nginx and wrk (Debian: nginx-light, wrk). Both servers run at once on one core, the load on the other; rounds
go A, B, B, A; a figure is the median of the ratios of the rounds, with its quartiles.
"""

from __future__ import annotations

import argparse
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PATH = "/.well-known/mcp/server.json"
NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type application/json; keepalive_requests 100000000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="pairs of measurements per figure")
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement")
    chosen = parser.parse_args()
    for agents in (10, 100):
        compare(agents, chosen.rounds, chosen.seconds)


def compare(agents: int, rounds: int, seconds: int) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        ours = f"http://127.0.0.1:{stack.enter_context(registry(folder, agents))}{PATH}"
        body, tag = fetch(ours)
        (folder / "www" / PATH[1:]).parent.mkdir(parents=True)
        (folder / "www" / PATH[1:]).write_bytes(body)
        theirs = f"http://127.0.0.1:{stack.enter_context(nginx(folder))}{PATH}"
        assert fetch(theirs)[0] == body
        say(f"{agents} agents, {len(body)} bytes: registry / nginx", ratios(ours, theirs, rounds, seconds))
        same = f"If-None-Match: {tag}"
        say(f"{agents} agents: 304 / 200", ratios(ours, ours, rounds, seconds, header=same))


def say(what: str, found: list[float]) -> None:
    low, middle, high = statistics.quantiles(found, n=4)
    print(f"{what}: {middle:.2f} (quartiles {low:.2f} to {high:.2f}, {len(found)} rounds)", flush=True)


def ratios(one: str, other: str, rounds: int, seconds: int, *, header: str = "") -> list[float]:
    """The rate of `one` (with `header`) over that of `other`, once per round, the order turned each time."""
    found = []
    for number in range(rounds):
        if number % 2:
            second = rate(other, seconds)
            first = rate(one, seconds, header)
        else:
            first = rate(one, seconds, header)
            second = rate(other, seconds)
        found.append(first / second)
    return found


def rate(url: str, seconds: int, header: str = "") -> float:
    more = ["-H", header] if header else []
    command = ["taskset", "-c", "1", "wrk", "-t1", "-c16", f"-d{seconds}s", *more, url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said or header, said
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


@contextmanager
def registry(folder: Path, agents: int) -> Iterator[int]:
    port = free_port()
    lines = [
        f"  agent_{number}: {{module: a.b, port: {20000 + number}, description: Number {number}}}\n"
        for number in range(agents)
    ]
    head = f"name: bench\nregistry_port: {port}\nregistry: {{probe_interval: 3600}}\nagents:\n"
    (folder / "agents.yaml").write_text(head + "".join(lines))
    with process([sys.executable, "-m", "pallas_registry"], folder, port):
        while urllib.request.urlopen(f"http://127.0.0.1:{port}{PATH}").read().count(b"not probed yet"):
            time.sleep(0.1)
        yield port


@contextmanager
def nginx(folder: Path) -> Iterator[int]:
    port = free_port()
    (folder / "nginx.conf").write_text("user root;" + NGINX.format(folder=folder, port=port))
    with process(["nginx", "-c", str(folder / "nginx.conf")], folder, port):
        yield port


@contextmanager
def process(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """A server on core 0, from when it listens."""
    running = subprocess.Popen(["taskset", "-c", "0", *command], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        while True:
            assert running.poll() is None, command
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield
    finally:
        running.terminate()
        running.wait()


def fetch(url: str) -> tuple[bytes, str]:
    with urllib.request.urlopen(url) as reply:
        return reply.read(), reply.headers["etag"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


if __name__ == "__main__":
    main()

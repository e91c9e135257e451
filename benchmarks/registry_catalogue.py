"""The registry's catalogue against nginx with the same bytes, and 304 against 200.

Both servers run at once on one core, the load on the other. Debian: nginx-light, wrk.
"""

from __future__ import annotations

import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.method import load, servers
from benchmarks.method.report import Figure, at_least, ratio
from benchmarks.method.side_by_side import Effort, compare

PATH = "/.well-known/mcp/server.json"
NGINX = """
user root; daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type application/json; keepalive_requests 100000000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
}}
"""


def measure(effort: Effort) -> Iterator[Figure]:
    load.need("nginx", "wrk")
    yield from _with(10, 0.7, effort)
    yield from _with(100, 0.9, effort)


def _with(agents: int, least: float, effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        ours, pid = stack.enter_context(registry(folder, agents))
        body, tag = fetch(ours)
        (folder / "www" / PATH[1:]).parent.mkdir(parents=True)
        (folder / "www" / PATH[1:]).write_bytes(body)
        theirs, other = stack.enter_context(nginx(folder))
        if fetch(theirs)[0] != body:
            raise RuntimeError("nginx serves something else")
        plain = partial(load.get, ours, effort.seconds, pid)
        unchanged = partial(load.get, ours, effort.seconds, pid, f"If-None-Match: {tag}")
        static = partial(load.get, theirs, effort.seconds, other)
        what = f"catalogue of {agents} agents, {len(body):,} bytes"
        yield ratio(f"{what}: registry / nginx", compare(plain, static, effort), at_least(least), "/s")
        # no more than that: both are answered unparsed, and a 200 is its bytes besides
        yield ratio(f"catalogue of {agents} agents: 304 / 200", compare(unchanged, plain, effort), at_least(1), "/s")


@contextmanager
def registry(folder: Path, agents: int) -> Iterator[tuple[str, int]]:
    """URL of the catalogue and process id of a registry that has asked every agent once, and got no answer."""
    port = servers.free_port()
    lines = [
        f"  agent_{number}: {{module: a.b, port: {20000 + number}, description: Number {number}}}\n"
        for number in range(agents)
    ]
    head = f"name: bench\nregistry_port: {port}\nregistry: {{probe_interval: 3600}}\nagents:\n"
    (folder / "agents.yaml").write_text(head + "".join(lines))
    url = f"http://127.0.0.1:{port}{PATH}"
    with servers.listening([sys.executable, "-m", "pallas_registry"], folder, port) as running:
        servers.until(lambda: b"not probed yet" not in fetch(url)[0])
        yield url, running.pid


@contextmanager
def nginx(folder: Path) -> Iterator[tuple[str, int]]:
    port = servers.free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
    with servers.listening(["nginx", "-c", str(folder / "nginx.conf")], folder, port) as running:
        yield f"http://127.0.0.1:{port}{PATH}", running.pid


def fetch(url: str) -> tuple[bytes, str]:
    with urllib.request.urlopen(url) as reply:
        return reply.read(), reply.headers["etag"]

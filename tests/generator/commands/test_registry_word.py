"""`pallas-gen probe` of an agent that is not up: the reason that the registry of the fleet file has for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pallas_contract.documents import server_json
from pallas_contract.documents.reason import Code, Reason
from pallas_contract.fleet import source
from pallas_contract.validate import load
from tests.ports import free_port

REFUSAL = Reason("InputRefused", "agents.yaml:4:3: no module named `pandas`")


@contextmanager
def registry(file: Path, reason: Reason) -> Iterator[None]:
    """The registry of the fleet in `file`, which says `reason` of its agents."""
    fleet = load.parse(source.read(file))
    entries = [
        server_json.entry(server_json.server(fleet, agent, None, "local"), datetime.now(UTC), "error", reason)
        for agent in fleet.agents
    ]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"servers": entries}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", fleet.registry_port), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def fleet(make) -> tuple[Path, str]:
    """A fleet file, and the URL of its agent, which is not up."""
    port = free_port()
    text = f"name: x\nregistry_port: {free_port()}\nagents:\n  scout: {{module: agents.scout, port: {port}}}\n"
    return make(text), f"http://127.0.0.1:{port}/mcp"


def test_of_an_agent_that_refused_its_input_it_says_why(fleet, run) -> None:
    path, url = fleet
    with registry(path, REFUSAL):
        code, out, _ = run("probe", "-f", str(path), url)
        other = run("probe", "-f", str(path), f"http://127.0.0.1:{free_port()}/mcp")[1]
    assert code == 1
    assert out.rstrip().endswith(f"connection refused; the registry says: {REFUSAL.message}")
    assert "the registry says" not in other


def test_a_large_fleet_is_no_reason_to_say_nothing(make, run) -> None:
    port = free_port()
    others = "".join(f"  agent-{n}: {{module: agents.scout, port: {n}}}\n" for n in range(1, 401) if n != port)
    text = f"name: x\nregistry_port: {free_port()}\nagents:\n  scout: {{module: agents.scout, port: {port}}}\n{others}"
    path = make(text)
    with registry(path, REFUSAL):
        out = run("probe", "-f", str(path), f"http://127.0.0.1:{port}/mcp")[1]
    assert out.rstrip().endswith(f"the registry says: {REFUSAL.message}")


@pytest.mark.parametrize("reason", ["ConnectionRefused", "Unreachable"])
def test_what_the_registry_found_itself_is_no_news(fleet, run, reason: Code) -> None:
    path, url = fleet
    with registry(path, Reason(reason, "the same again")):
        assert "the registry says" not in run("probe", "-f", str(path), url)[1]


@pytest.mark.parametrize("text", ["", "name: [", "name: x\n"])
def test_without_a_fleet_file_it_says_what_it_found(fleet, run, text: str) -> None:
    path, url = fleet
    path.write_text(text)
    code, out, err = run("probe", "-f", str(path), url)
    assert (code, err) == (1, "")
    assert out.rstrip().endswith("connection refused")
    path.unlink()
    assert run("probe", "-f", str(path), url)[0] == 1

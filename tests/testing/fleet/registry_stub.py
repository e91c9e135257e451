"""A registry and agents that a test makes up: documents, changes and metrics over HTTP, as a target."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pallas_testing.project import fleet_file
from pallas_testing.targets.base import Order, Target

HEALTH = "io.pallas-kit/health"


class Stub(Target):
    """A fleet of the user's agents.yaml that consists of what `states`, `changes` and `metrics` say."""

    name = "stub"
    last: Stub

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        Stub.last = self
        self.states: dict[str, str] = {}
        self.reasons: dict[str, dict[str, str]] = {}
        self.changes: list[dict[str, str]] = []
        self.metrics = "pallas_sessions 0.0\npallas_calls_in_flight 0.0\n"
        self.end = ""
        self.done: list[str] = []
        self.services: list[dict[str, str]] = []
        self.unready = 0
        """How often /readyz says no."""
        self.told = threading.Event()
        """Set where changes may arrive; a stream from now on sets it."""
        self.told.set()
        self._bell = threading.Condition()
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        self.file = fleet_file.read(self.order.file)
        for agent in self.file.agents:
            self.change(agent, "ok")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.done.append("stop")
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def url(self, member: str) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def logs(self, member: str) -> str:
        return f"first line of {member}\nkey={member}-canary\n"

    def ended(self) -> str:
        return self.end

    def kill(self, agent: str) -> None:
        self.done.append(f"kill {agent}")
        self.change(agent, "error", "connection refused")

    def restore(self, agent: str) -> None:
        self.done.append(f"restore {agent}")
        self.change(agent, "ok")

    def change(self, agent: str, status: str, reason: str = "", code: str = "Ok") -> None:
        """Let an agent be in another state."""
        self.reasons[agent] = {} if code == "Ok" else {"message": reason, "reason": code}
        with self._bell:
            old = self.states.get(agent, "unknown")
            self.states[agent] = status
            self.changes.append({"agent": agent, "old": old, "new": status, "reason": reason, "code": code})
            self._bell.notify_all()

    def status(self, path: str) -> int:
        """Return the HTTP status of the next answer."""
        if path != "/readyz":
            return 200
        self.unready -= 1
        self.done.append(path)
        return 503 if self.unready >= 0 else 200

    def body(self, path: str) -> str:
        """Return the text at a path."""
        if path == "/metrics":
            return self.metrics
        return json.dumps({"services": self.services} if path == "/services" else self._document())

    def _document(self) -> dict[str, Any]:
        health = {agent: {"status": status} | self.reasons.get(agent, {}) for agent, status in self.states.items()}
        entries = [
            {"server": {"name": f"test/{fleet_file.slug(agent)}"}, "_meta": {HEALTH: fields}}
            for agent, fields in health.items()
        ]
        return {"servers": entries}

    def _handler(stub) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler below has a self of its own
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(stub.status(self.path))
                self.end_headers()
                if self.path == "/events":
                    self._stream()
                else:
                    self.wfile.write(stub.body(self.path).encode())

            def do_POST(self) -> None:
                stub.done.append(f"POST {self.path}")
                self.send_response(200)
                self.end_headers()

            def _stream(self) -> None:
                number = 0 if self.headers["last-event-id"] else len(stub.changes)
                self.wfile.write(f"id: x-{number}\nretry: 2000\n\n".encode())
                if number:
                    stub.told.set()
                while True:
                    with stub._bell:
                        while len(stub.changes) == number:
                            stub._bell.wait()
                        changes = stub.changes[number:]
                    stub.told.wait()
                    for change in changes:
                        number += 1
                        self.wfile.write(f"id: x-{number}\nevent: change\ndata: {json.dumps(change)}\n\n".encode())

            def log_message(self, *_: object) -> None:
                pass

        return Handler

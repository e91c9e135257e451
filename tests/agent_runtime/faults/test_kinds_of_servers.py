"""Servers of every kind in an agent's health: those that refuse it, those written in short, and those of SSE."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from mcp import Client
from starlette.responses import JSONResponse, Response

from tests.agent_runtime.engine.answers.notes import Notes
from tests.served import served

pytestmark = [pytest.mark.slow, pytest.mark.waits]


class Refusing(BaseHTTPRequestHandler):
    """401 to everything."""

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(401)
        self.send_header("content-length", "0")
        self.end_headers()


class Guarded(BaseHTTPRequestHandler):
    """Whoever comes may shake hands; whoever wants to see tools gets the status in the path. /moved leads on."""

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        place = self.path.split("/")[1]
        if place == "moved":
            self._send(307, b"", location="/200/mcp")
        elif request["method"] == "server/discover":
            self._answer(request, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        elif place == "200":
            self._answer(request, {"tools": []})
        else:
            self._send(int(place), b"")

    def _answer(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
        self._send(200, body, content_type="application/json")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Streaming(BaseHTTPRequestHandler):
    """The stream of a server of HTTP with SSE, which ends after its first event."""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\r\ndata: /messages\r\n\r\n")


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def scout(toolkit: Any, folder: Any, servers: dict[str, Any]) -> Any:
    """The folder of a project with an agent of these servers."""
    files = {
        "agents.yaml": {
            "name": "k",
            "registry_port": toolkit.free_port(),
            "agents": {"scout": {"card": "scout.md", "port": toolkit.free_port()}},
        },
        "scout.md": f"---\ntype: agent\nname: scout\nservers: [{', '.join(servers)}]\n---\nYou are Scout.\n",
        "fastagent.config.yaml": {"default_model": "passthrough", "mcp": {"servers": servers}},
    }
    return toolkit.write_files(folder, files)


async def test_each_kind_of_server_counts_in_health(toolkit: Any, tmp_path: Any) -> None:
    with ExitStack() as stack:
        refusing = stack.enter_context(answering(Refusing))
        guarded = stack.enter_context(answering(Guarded))
        streaming = stack.enter_context(answering(Streaming))
        closed = f"http://127.0.0.1:{toolkit.free_port()}"
        servers = {
            "locked": {"url": f"{refusing}/mcp"},
            "login": {"url": f"{refusing}/mcp", "auth": {"oauth": True}},
            "short": {"target": f"{closed}/mcp"},
            "stream": {"url": f"{streaming}/events", "transport": "sse"},
            "gone": {"target": f"{closed}/sse"},
            "guarded": {"url": f"{guarded}/401/mcp"},
            "broken": {"url": f"{guarded}/500/mcp"},
            "moved": {"url": f"{guarded}/moved/mcp"},
        }
        agents = stack.enter_context(
            toolkit.running(scout(toolkit, tmp_path, servers), "scout", PALLAS_CONNECT_TIMEOUT="5")
        )

        def page() -> dict[str, Any] | None:
            answer: dict[str, Any] = json.loads(agents.get("scout", "/healthz")[1])
            return answer if answer["downstream"].keys() == servers.keys() else None

        health = await asyncio.to_thread(toolkit.until, page)
        assert health["status"] == "degraded"
        assert health["message"].split("; ") == [
            "Unreachable: broken, gone, short",
            "broken: tools/list: HTTP 500",
            "Refused by: guarded, locked",
        ]
        assert health["downstream"]["moved"]["state"] == "ok"
        assert health["downstream"]["stream"]["state"] == "ok"
        assert health["downstream"]["login"]["state"] == "unauthenticated"


async def test_a_server_that_lists_for_everybody_and_refuses_calls(toolkit: Any, tmp_path: Any) -> None:
    statuses: list[int] = []

    def answer(call: dict[str, Any]) -> Response:
        result = {"content": [{"type": "text", "text": "a note"}]}
        return JSONResponse({"jsonrpc": "2.0", "id": call["id"], "result": result}, statuses[-1])

    async with served(Notes({"read": answer})) as http:
        agents = toolkit.Agents(
            scout(toolkit, tmp_path, {"notes": {"url": f"{http.base_url}/mcp"}}), {}, toolkit.warm_parent
        )
        agents.start("scout")
        said = []
        try:
            await asyncio.to_thread(agents.wait, "scout")
            for status in (401, 200, 403):
                statuses.append(status)
                async with Client(agents.url("scout")) as client:
                    await client.call_tool("scout", {"message": "***CALL_TOOL notes__read"})
                wanted = "ok" if status == 200 else "degraded"

                def page(wanted: str = wanted) -> dict[str, Any] | None:
                    found: dict[str, Any] = json.loads(agents.get("scout", "/healthz")[1])
                    return found if found["status"] == wanted else None

                said.append((await asyncio.to_thread(toolkit.until, page)).get("message"))
        finally:
            await asyncio.to_thread(agents.close)
        assert said == ["Refused by: notes", None, "Refused by: notes"]

"""An MCP server as a stranger writes one: `server.py PORT FILE`, standard library only, one older protocol version.

It knows nothing of the kit: no PALLAS_BIND, no get_health, no session; what it answers begins with the text in FILE.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOL = {"name": "search_web", "description": "Search the web.", "inputSchema": QUERY}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None where the method is not known."""
    if method == "initialize":
        info = {"name": "argos", "version": "7"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call" and params.get("name") == TOOL["name"]:
        begin = Path(sys.argv[2]).read_text("utf-8").strip()
        text = f"{begin} about {params['arguments']['query']!r} (argos on {socket.gethostname()})"
        return {"content": [{"type": "text", "text": text}]}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self.reply(202)
            return
        result = answer(message["method"], message.get("params") or {})
        outcome = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode())

    def do_GET(self) -> None:
        self.reply(405)

    def reply(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # as the first process of a container it would hear of none
    ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()

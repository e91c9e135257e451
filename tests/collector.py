"""A collector of spans that keeps what it was sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Takes OTLP over HTTP; the bytes of every request, and the spans in them."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.broken = False
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spans(self) -> list[dict[str, Any]]:
        """Every span so far: what OTLP's JSON form says, attributes as a dict, and the service that sent it."""
        found = []
        for body in list(self.bodies):
            request = MessageToDict(ExportTraceServiceRequest.FromString(body))
            for resource in request.get("resourceSpans", ()):
                service = plain(resource["resource"]["attributes"])["service.name"]
                for scope in resource["scopeSpans"]:
                    found += [
                        {**span, "attributes": plain(span.get("attributes", [])), "service": service}
                        for span in scope["spans"]
                    ]
        return found

    def trace(self, task: str) -> list[dict[str, Any]]:
        """The spans of the one trace in which that task was worked on."""
        spans = self.spans()
        traces = {span["traceId"] for span in spans if span["attributes"].get("pallas.task.id") == task}
        return [span for span in spans if span["traceId"] in traces]


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["key"]: next(iter(item["value"].values())) if item["value"] else "" for item in attributes}


@contextmanager
def running() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if not collector.broken:
                collector.bodies.append(body)
            self.send_response(400 if collector.broken else 200)
            self.send_header("content-length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield collector
        server.shutdown()
        thread.join()

"""What a user would have an OpenTelemetry collector for, in a container of the agent image."""

from __future__ import annotations

from collections.abc import Iterable

NAME, PORT = "otel-collector", 4318
CODE = """
import http.server
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            said = {item.key: item.value.string_value for item in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    print("span", said["service.name"], span.trace_id.hex(), span.name, sep="|", flush=True)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

http.server.ThreadingHTTPServer(("0.0.0.0", 4318), Handler).serve_forever()
"""


def traces(lines: Iterable[str]) -> list[set[str]]:
    """The services that took part in each trace, from what the collector printed."""
    found: dict[str, set[str]] = {}
    for _, service, trace, _ in (line.split("|") for line in lines if line.startswith("span|")):
        found.setdefault(trace, set()).add(service)
    return list(found.values())

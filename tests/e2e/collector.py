"""What a user would have an OpenTelemetry collector for, in a container of the agent image."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

NAME, PORT = "otel-collector", 4318
CODE = """
import http.server, sys
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            said = {item.key: item.value.string_value for item in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    line = "|".join(("span", said["service.name"], span.trace_id.hex(), span.name))
                    sys.stdout.write(line + "\\n")  # at once: another thread may write, too
        sys.stdout.flush()
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

http.server.ThreadingHTTPServer(("0.0.0.0", 4318), Handler).serve_forever()
"""


def traces(lines: Iterable[str]) -> list[set[str]]:
    """The services that took part in each trace, from what the collector printed."""
    found: dict[str, set[str]] = {}
    for _, service, trace, _ in (line.split("|", 3) for line in lines if line.startswith("span|")):
        found.setdefault(trace, set()).add(service)
    return list(found.values())


async def until_traced(
    ask: Callable[[], Awaitable[object]], lines: Callable[[], Iterable[str]], services: set[str]
) -> None:
    """Ask until the collector has printed one more trace in which exactly `services` took part.

    An agent gives up spans that the collector does not take in time, which on a busy machine it may not.
    """
    before = traces(lines()).count(services)
    async with asyncio.timeout(180):
        while True:
            await ask()
            for _ in range(30):
                if traces(lines()).count(services) > before:
                    return
                await asyncio.sleep(0.5)

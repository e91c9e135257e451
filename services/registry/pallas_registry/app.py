"""The registry's HTTP side: ready-made documents, probes for whoever runs it, metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from pallas_contract import __version__
from pallas_registry import catalogue
from pallas_registry.metrics import Metrics
from pallas_registry.prebuilt import Document, Prebuilt

DESCRIPTION = "Finds the agents of a fleet, probes them, and publishes what it knows (seed 000, section 1)."

Waiting = Callable[[], str]
"""Why the registry is not ready yet; empty when it is."""


def create_app(*, server_json: Callable[[], Document], metrics: Metrics, waiting: Waiting) -> FastAPI:
    """The ASGI application; what it shows is read from the arguments at each request."""
    app = FastAPI(title="pallas registry", version=__version__, description=DESCRIPTION)

    @app.get("/livez", tags=["probes"])
    async def livez() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["probes"], responses={503: {"description": "Agents have not been probed yet."}})
    async def readyz() -> JSONResponse:
        """The file is read and each agent has been probed once, or enough time for that has passed."""
        reason = waiting()
        if reason:
            return JSONResponse({"status": "starting", "message": reason}, status_code=503)
        return JSONResponse({"status": "ok"})

    @app.get("/metrics", tags=["probes"], response_class=Response)
    async def expose(request: Request) -> Response:
        """Prometheus metrics, in text or OpenMetrics by the Accept header."""
        body, content_type = metrics.render(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    documented = app.openapi

    def openapi() -> dict[str, Any]:
        schema = documented()
        schema["paths"].setdefault(catalogue.PATH, _SERVER_JSON)
        return schema

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI's documented way to extend the schema
    app.add_middleware(Prebuilt, documents={catalogue.PATH: server_json})
    return app


_SERVER_JSON: dict[str, Any] = {
    "get": {
        "tags": ["catalogue"],
        "summary": "All agents of the fleet",
        "description": "The MCP server schema with the state of each agent in `_meta` (seed 000, section 1).",
        "parameters": [
            {"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}},
        ],
        "responses": {
            "200": {
                "description": "The current set of agents.",
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "content": {"application/json": {"schema": {"type": "object", "required": ["servers"]}}},
            },
            "304": {"description": "Unchanged since the ETag given."},
        },
    }
}

"""`/openapi.json`: all that the registry answers over HTTP, except its page for people and `/mcp`."""

from __future__ import annotations

from typing import Any

from pallas_contract import __version__
from pallas_contract.documents import server_card
from pallas_registry.catalogue import catalogue, prometheus_sd, registry_api, services
from pallas_registry.http import events

PATH = "/openapi.json"
_ABOUT = "Finds the agents of a fleet, probes them, and publishes what it knows (seed 000, section 1)."

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}},
}
_SERVER = {
    "type": "object",
    "required": ["server", "_meta"],
    "properties": {
        "server": {"type": "object", "required": ["name", "description", "version"]},
        "_meta": {"type": "object"},
    },
}
_LIST = {
    "type": "object",
    "required": ["servers", "metadata"],
    "properties": {
        "servers": {"type": "array", "items": _SERVER},
        "metadata": {
            "type": "object",
            "required": ["count"],
            "properties": {"count": {"type": "integer"}, "nextCursor": {"type": "string"}},
        },
    },
}
_DELETED = {
    "name": "include_deleted",
    "in": "query",
    "schema": {"type": "boolean", "default": False},
    "description": "Also agents that are no longer in the file; implied by updated_since.",
}
_NAME = {
    "name": "serverName",
    "in": "path",
    "required": True,
    "description": "URL-encoded, such as com.example.project%2Fharper.",
    "schema": {"type": "string"},
}


def document() -> dict[str, Any]:
    """Return the description, OpenAPI 3.1."""
    info = {"title": "pallas registry", "description": _ABOUT, "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": {**_pages(), **_documents()}}


def _documents() -> dict[str, Any]:
    """Return the path items of what is ready before it is asked for, or joined of ready parts."""
    anything = {"type": "object"}
    groups = {"type": "array", "items": {"type": "object"}}
    seed = "The MCP server schema with the state of each agent in `_meta` (seed 000, section 1)."
    return {
        catalogue.PATH: _get("catalogue", "All agents of the fleet", anything, about=seed),
        server_card.CATALOG_PATH: _get("catalogue", "The AI catalogue", anything, kind=server_card.CATALOG_TYPE),
        f"{catalogue.CARDS}{{slug}}": _get(
            "catalogue",
            "The server card of an agent",
            anything,
            kind=server_card.CARD_TYPE,
            parameters=[_path("slug")],
            missing=True,
        ),
        prometheus_sd.PATH: _get("probes", "Prometheus HTTP service discovery", groups),
        services.PATH: _get("catalogue", "Services that the fleet brings along, and how they are", anything),
        registry_api.PATH: _get("registry API", "List servers", _LIST, parameters=_FILTERS, bad=True),
        f"{registry_api.PATH}/{{serverName}}/versions": _get(
            "registry API", "All versions of a server", _LIST, parameters=[_NAME, _DELETED], bad=True, missing=True
        ),
        f"{registry_api.PATH}/{{serverName}}/versions/{{version}}": _get(
            "registry API",
            "One version of a server, or `latest`",
            _SERVER,
            parameters=[_NAME, _path("version"), _DELETED],
            bad=True,
            missing=True,
        ),
    }


def _pages() -> dict[str, Any]:
    """Return the path items of what is made when it is asked for."""
    status = {"type": "object", "required": ["status"], "additionalProperties": {"type": "string"}}
    state = {"type": "object", "required": ["agent"]}
    refusals = {
        "403": "A page of another site asks.",
        "404": "There is no such agent.",
        "429": "Another recheck is under way or was just now; see Retry-After.",
    }
    recheck = {
        "tags": ["people"],
        "summary": "Probe all replicas of the agent now; one agent at a time",
        "parameters": [_path("agent")],
        "responses": {
            "200": _json("What is found.", state),
            **{code: _json(about, _ERROR) for code, about in refusals.items()},
        },
    }
    return {
        "/livez": _page("probes", "The process answers", {"200": _json("It does.", status)}),
        "/readyz": _page(
            "probes",
            "Each agent was probed once and is, in containers, no longer starting, or enough time for that has passed",
            {"200": _json("Ready.", status), "503": _json("Agents have not been probed yet.", status)},
        ),
        "/metrics": _page(
            "probes",
            "Prometheus metrics, in text or OpenMetrics by the Accept header",
            {"200": {"description": "As of now.", "content": {"text/plain": {}, "application/openmetrics-text": {}}}},
        ),
        events.PATH: _page(
            "people",
            "Changes of state as server-sent events, from now on or after the event `Last-Event-ID`",
            {
                "200": {"description": "A stream without an end.", "content": {"text/event-stream": {}}},
                "503": _json("Too many streams are open.", _ERROR),
            },
            [{"name": "Last-Event-ID", "in": "header", "schema": {"type": "string", "default": ""}}],
        ),
        "/agents/{agent}/recheck": {"post": recheck},
        "/uptime": _page(
            "people",
            "Seconds of the last hour and day in which each agent was up, and of which anything is known",
            {"200": _json("At most a second old.", _UPTIME)},
        ),
    }


_SECONDS = {"type": "object", "required": ["up", "known"], "additionalProperties": {"type": "number", "minimum": 0}}
_WINDOWS = {"type": "object", "required": ["hour", "day"], "properties": {"hour": _SECONDS, "day": _SECONDS}}
_UPTIME = {
    "type": "object",
    "required": ["agents"],
    "properties": {"agents": {"type": "object", "additionalProperties": _WINDOWS}},
}
_FILTERS: list[dict[str, Any]] = [
    {"name": "cursor", "in": "query", "schema": {"type": "string"}, "description": "`metadata.nextCursor` of a page."},
    {
        "name": "limit",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1, "maximum": registry_api.MOST, "default": registry_api.LIMIT},
    },
    {
        "name": "search",
        "in": "query",
        "schema": {"type": "string"},
        "description": "Part of a name, title or description; case does not count.",
    },
    {"name": "updated_since", "in": "query", "schema": {"type": "string", "format": "date-time"}},
    {"name": "version", "in": "query", "schema": {"type": "string"}, "description": "`latest` or an exact version."},
    _DELETED,
]


def _path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _json(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _page(
    tag: str, summary: str, responses: dict[str, Any], parameters: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    return {"get": {"tags": [tag], "summary": summary, "parameters": parameters or [], "responses": responses}}


def _get(
    tag: str,
    summary: str,
    schema: dict[str, Any],
    *,
    about: str = "",
    kind: str = "application/json",
    parameters: list[dict[str, Any]] | None = None,
    bad: bool = False,
    missing: bool = False,
) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": {
            "description": "As of the last change.",
            "headers": {"ETag": {"schema": {"type": "string"}}},
            "content": {kind: {"schema": schema}},
        },
        "304": {"description": "Unchanged since the ETag given in If-None-Match."},
    }
    error = {"content": {"application/json": {"schema": _ERROR}}}
    if bad:
        responses["400"] = {"description": "A query parameter cannot be used.", **error}
    if missing:
        responses["404"] = {"description": "There is none.", **error}
    operation = {"tags": [tag], "summary": summary, "parameters": parameters or [], "responses": responses}
    return {"get": operation | ({"description": about} if about else {})}

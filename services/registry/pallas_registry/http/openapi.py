"""The ready-made documents as `/openapi.json` describes them; FastAPI sees only what it routes itself."""

from __future__ import annotations

from typing import Any

from pallas_contract.documents import server_card
from pallas_registry.catalogue import catalogue, prometheus_sd, registry_api, services

PATH = "/openapi.json"

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


def paths() -> dict[str, Any]:
    """Return OpenAPI path items."""
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

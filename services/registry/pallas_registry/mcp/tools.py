"""The tools of the registry for agents: how the fleet is, who is there, who is good for what."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from pallas_contract.documents import health
from pallas_contract.documents.health import Health, Status
from pallas_registry.status_page.overview import Overview, Row

_HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_NAMED = 20
"""Root causes that `get_health` names; it is read by people and models."""
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_AGENTS: dict[str, Any] = {
    "type": "object",
    "required": ["agents"],
    "properties": {"agents": {"type": "array", "items": {"type": "object", "required": ["name", "status"]}}},
}


def _tool(name: str, description: str, takes: Mapping[str, Any], gives: Mapping[str, Any]) -> dict[str, Any]:
    schemas = {"inputSchema": takes, "outputSchema": gives}
    return {"name": name, "description": description, **schemas, "annotations": _HINTS}


TOOLS = [
    _tool(
        "find_agent",
        "Find agents whose name, title, description or registered tools contain a text; the well ones first.",
        {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Part of a name, title, description or tool."}},
            "required": ["query"],
            "additionalProperties": False,
        },
        _AGENTS,
    ),
    _tool(
        health.TOOL,
        "Returns the health status of this fleet: ok when every agent is well, else why not.",
        _NOTHING,
        {"type": "object", "required": ["status"], "properties": {"status": {"enum": list(health.STATUSES)}}},
    ),
    _tool("list_agents", "All agents of the fleet with their address and state.", _NOTHING, _AGENTS),
]
"""As `tools/list` gives them, by name."""


class BadArguments(Exception):
    """The arguments do not fit the tool; the text says how."""


class NoSuchTool(Exception):
    """There is no tool of this name."""


def call(name: str, arguments: Mapping[str, Any], overview: Callable[[], Overview]) -> dict[str, Any]:
    """Return a `tools/call` result: the JSON as text and as structured content.

    Raises:
        NoSuchTool, BadArguments.
    """
    tool = next((tool for tool in TOOLS if tool["name"] == name), None)
    if tool is None:
        raise NoSuchTool(name)
    properties = tool["inputSchema"]["properties"]
    mismatched = [
        *(key for key in arguments if key not in properties),
        *(key for key in properties if key not in arguments),
    ]
    if mismatched or not all(isinstance(value, str) for value in arguments.values()):
        raise BadArguments(
            f"{name} takes {', '.join(properties) or 'no arguments'}" + (" as text" if properties else "")
        )
    view = overview()
    if name == health.TOOL:
        result: dict[str, Any] = dict(of_fleet(view).as_dict())
    else:
        # case folded on both sides, so that ß finds SS
        text = arguments.get("query", "").casefold()
        rows = [row for row in view.rows if text in _searched(row)]
        result = {"agents": [_agent(row) for row in sorted(rows, key=lambda row: (row.state != "ok", row.agent))]}
    return {"content": [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}], "structuredContent": result}


def of_fleet(view: Overview) -> Health:
    """Return the health of all as one (seed 000 section 2): `error` when none is up, `degraded` when one is unwell."""
    total = sum(view.counts.values())
    lost = view.counts["error"]
    well = view.counts["ok"]
    # the agents decide; of a service it says that it may be missed
    status: Status = "error" if lost == total else "ok" if well == total and not view.down else "degraded"
    causes = [f"{root.agent}: {root.reason.message}" for root in islice(view.troubles, _NAMED)]
    if len(view.troubles) > _NAMED:
        causes.append(f"and {len(view.troubles) - _NAMED} more")
    starting = [f"{view.counts['starting']} starting"] if view.counts["starting"] else []
    unknown = [f"{view.counts['unknown']} not known yet"] if view.counts["unknown"] else []
    return Health(status, view.now, "; ".join(causes + starting + unknown))


def _searched(row: Row) -> str:
    """Return the text that `find_agent` searches; of agents that registered it knows the tools too."""
    tools = row.registered.tools if row.registered else ()
    return "\n".join((row.agent, row.title, row.description, *tools)).casefold()


def _agent(row: Row) -> dict[str, Any]:
    fields = {
        "name": row.agent,
        "title": row.title,
        "description": row.description,
        "url": row.url,
        "status": row.state,
        "message": row.reason.message,
        "depends_on": list(row.depends_on),
        "registered": row.registered is not None,
        "tools": list(row.registered.tools) if row.registered else [],
    }
    # models pay for every field: what is empty is not sent
    return {key: value for key, value in fields.items() if value}

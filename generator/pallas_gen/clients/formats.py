"""Agents -> the configuration of one MCP client, as its documentation has it. Tokens are references. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import yaml

from pallas_contract import names
from pallas_gen.clients.entries import Entry

_INPUT = "pallas-token"
_GOOSE_TIMEOUT = 300
"""Seconds; an agent may work for minutes."""
_BRIDGE = ("-y", "mcp-remote@0.15.1")
"""With its version: else whatever is newest on the day runs with the user's token."""
_READ_FILE = (
    'PALLAS_TOKEN=$(cat "$0") && export PALLAS_TOKEN && exec npx "$@" --header \'Authorization:Bearer ${PALLAS_TOKEN}\''
)
"""For a shell: `$0` is the file with the token. The bridge puts the variable in, so no list of processes has it."""


@dataclass(frozen=True, slots=True)
class Token:
    """Where a client finds the token: a variable of its environment, or for one that hands none on a file."""

    variable: str = names.ENV_TOKEN
    file: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """A client, the file that it reads, and what makes that file."""

    title: str
    file: str
    render: Callable[[Sequence[Entry], Token], str]
    note: str
    """The place of the file, or what is done with it."""
    token: str
    """The way by which it gets the token; with `{variable}` or `{file}`."""


def _headers(entry: Entry, reference: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {reference}"}} if entry.token else {}


def _json(document: Mapping[str, Any]) -> str:
    return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n"


def _yaml(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=1000)


def _claude_code(entries: Sequence[Entry], token: Token) -> str:
    servers = {
        entry.name: {"type": "http", "url": entry.url, **_headers(entry, f"${{{token.variable}}}")} for entry in entries
    }
    return _json({"mcpServers": servers})


def _claude_desktop(entries: Sequence[Entry], token: Token) -> str:
    """Return programs that pass on what they read: the file takes none that are elsewhere."""
    return _json({"mcpServers": {entry.name: _bridge(entry, token) for entry in entries}})


def _bridge(entry: Entry, token: Token) -> dict[str, Any]:
    parts = urlsplit(entry.url)
    plain = ["--allow-http"] if parts.scheme == "http" and parts.hostname not in names.LOCAL_HOSTS else []
    args = [*_BRIDGE, entry.url, "--transport", "http-only", *plain]
    if not entry.token:
        return {"command": "npx", "args": args}
    return {"command": "sh", "args": ["-c", _READ_FILE, token.file, *args]}


def _vscode(entries: Sequence[Entry], token: Token) -> str:
    servers = {
        entry.name: {"type": "http", "url": entry.url, **_headers(entry, f"${{input:{_INPUT}}}")} for entry in entries
    }
    description = "Token for the agents of the fleet"
    entry = {"type": "promptString", "id": _INPUT, "description": description, "password": True}
    inputs = {"inputs": [entry]} if any(entry.token for entry in entries) else {}
    return _json({**inputs, "servers": servers})


def _cursor(entries: Sequence[Entry], token: Token) -> str:
    servers = {entry.name: {"url": entry.url, **_headers(entry, f"${{env:{token.variable}}}")} for entry in entries}
    return _json({"mcpServers": servers})


def _goose(entries: Sequence[Entry], token: Token) -> str:
    extensions = {}
    for entry in entries:
        extension: dict[str, Any] = {
            "enabled": True,
            "type": "streamable_http",
            "name": entry.name,
            "description": entry.description,
            "uri": entry.url,
            "timeout": _GOOSE_TIMEOUT,
        }
        if entry.token:
            # only variables that are named here are put into headers
            extension |= {"env_keys": [token.variable], **_headers(entry, f"${{{token.variable}}}")}
        extensions[entry.name] = extension
    return _yaml({"extensions": extensions})


def _fast_agent(entries: Sequence[Entry], token: Token) -> str:
    servers = {
        entry.name: {"transport": "http", "url": entry.url, **_headers(entry, f"${{{token.variable}}}")}
        for entry in entries
    }
    return _yaml({"mcp": {"servers": servers}})


def _inspector(entries: Sequence[Entry], token: Token) -> str:
    """Return servers without tokens: the Inspector reads no variables, and a value belongs in no file."""
    return _json({"mcpServers": {entry.name: {"type": "streamable-http", "url": entry.url} for entry in entries}})


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "Claude Code",
        ".mcp.json",
        _claude_code,
        "the file is in the folder where you start it; `claude mcp list` shows the agents",
        "it reads {variable} from the environment that it is started in",
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        "claude_desktop_config.json",
        _claude_desktop,
        "Settings, Developer, Edit Config opens it; its programs need Node",
        "its programs get no variables of yours, so each reads the token from {file}",
    ),
    "vscode": Client(
        "VS Code",
        ".vscode/mcp.json",
        _vscode,
        "the folder is the workspace; `MCP: List Servers` shows the agents",
        "it asks for the token once and keeps it",
    ),
    "cursor": Client(
        "Cursor",
        ".cursor/mcp.json",
        _cursor,
        "the folder is the project, or your home for all of them",
        "it reads {variable} from the environment that it is started in",
    ),
    "goose": Client(
        "Goose",
        "~/.config/goose/config.yaml",
        _goose,
        "its `extensions` go below those that are there",
        "it reads {variable} from its environment or its own secrets (`goose configure`)",
    ),
    "fast-agent": Client(
        "fast-agent",
        "fastagent.config.yaml",
        _fast_agent,
        "its `mcp.servers` go below those that are there; an agent names them in `servers`",
        "it reads {variable} from the environment that it is started in",
    ),
    "inspector": Client(
        "MCP Inspector",
        "inspector.json",
        _inspector,
        "`npx @modelcontextprotocol/inspector --config inspector.json` starts with it",
        "it reads no variables: give it the token in its own settings of the server",
    ),
}
"""Name -> client, in the order in which they are listed."""

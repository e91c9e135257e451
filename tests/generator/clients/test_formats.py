"""Each client's file, by its own schema or model where one is at hand; no file has a token in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from fast_agent.config import MCPServerSettings
from fastmcp.mcp_config import MCPConfig, RemoteMCPServer, StdioMCPServer, infer_transport_type_from_url

from pallas_gen.clients.entries import Entry
from pallas_gen.clients.formats import CLIENTS, Token

OPEN = Entry("scout", "http://localhost:8101/mcp", "Looks: around", token=False)
ASKING = Entry("tech-lead", "https://agents.example/tech-lead/mcp", "Überall", token=True)
BRIDGE = "mcp-remote@0.15.1"
TOKEN = Token("MY_TOKEN", "/keys/my token")
VSCODE: dict[str, Any] = {
    "additionalProperties": False,
    "properties": {
        "servers": {
            "additionalProperties": {
                "additionalProperties": False,
                "required": ["url"],
                "properties": {
                    "type": {"enum": ["http", "sse"]},
                    "url": {"type": "string", "pattern": "^https?://.+"},
                    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                    "dev": {"type": "object"},
                },
            }
        },
        "inputs": {
            "type": "array",
            "items": {
                "required": ["id", "type", "description"],
                "properties": {
                    "type": {"enum": ["promptString", "pickString", "command"]},
                    "password": {"type": "boolean"},
                },
            },
        },
    },
}
"""What VS Code's own schema of mcp.json admits of servers over HTTP (mcpConfiguration.ts, 2026)."""

GOOSE: dict[str, Any] = {
    "type": "object",
    "required": ["enabled", "name", "description", "uri", "type"],
    "properties": {
        "enabled": {"type": "boolean"},
        "type": {"enum": ["streamable_http"]},
        "name": {"type": "string"},
        "description": {"type": "string"},
        "uri": {"type": "string"},
        "timeout": {"type": ["integer", "null"], "minimum": 0},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "envs": {"type": "object", "additionalProperties": {"type": "string"}},
        "env_keys": {"type": "array", "items": {"type": "string"}},
        "available_tools": {"type": "array", "items": {"type": "string"}},
        "bundled": {"type": ["boolean", "null"]},
    },
    "additionalProperties": False,
}
"""What Goose's own schema has of an extension over HTTP (`ExtensionEntry` of ui/desktop/openapi.json, 2026).

It admits other keys too; here none that it does not know.
"""


def made(client: str, *entries: Entry) -> Any:
    text = CLIENTS[client].render(entries, TOKEN)
    return json.loads(text) if CLIENTS[client].file.endswith("json") else yaml.safe_load(text)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_open_agent_needs_no_more_than_its_address(client: str) -> None:
    text = CLIENTS[client].render([OPEN], TOKEN)
    assert OPEN.url in text
    assert not re.search("authorization|token|input", text, re.IGNORECASE)


@pytest.mark.parametrize(
    ("client", "reference"),
    [
        ("claude-code", "Bearer ${MY_TOKEN}"),
        ("vscode", "Bearer ${input:pallas-token}"),
        ("cursor", "Bearer ${env:MY_TOKEN}"),
        ("goose", "Bearer ${MY_TOKEN}"),
        ("fast-agent", "Bearer ${MY_TOKEN}"),
    ],
)
def test_a_token_is_a_reference_in_the_clients_own_spelling(client: str, reference: str) -> None:
    (servers,) = (value for key, value in _sections(made(client, OPEN, ASKING)) if "tech-lead" in value)
    assert servers["tech-lead"]["headers"] == {"Authorization": reference}
    assert "headers" not in servers["scout"]


def _sections(document: Any) -> list[tuple[str, Any]]:
    sections = [(key, value) for key, value in document.items() if isinstance(value, dict)]
    return sections + [entry for _, value in sections for entry in _sections(value)]


def test_claude_code_has_servers_over_http() -> None:
    assert made("claude-code", OPEN) == {"mcpServers": {"scout": {"type": "http", "url": OPEN.url}}}


def test_cursor_knows_the_transport_by_the_url() -> None:
    assert made("cursor", OPEN) == {"mcpServers": {"scout": {"url": OPEN.url}}}


@pytest.mark.parametrize("entries", [(OPEN,), (OPEN, ASKING)])
def test_vs_code_admits_it(entries: tuple[Entry, ...]) -> None:
    document = made("vscode", *entries)
    jsonschema.validate(document, VSCODE)
    assert [entry["password"] for entry in document.get("inputs", [])] == [True] * (len(entries) - 1)
    assert document["servers"]["scout"] == {"type": "http", "url": OPEN.url}


def test_goose_has_all_that_an_extension_over_http_needs() -> None:
    extension = made("goose", ASKING)["extensions"]["tech-lead"]
    assert extension == {
        "enabled": True,
        "type": "streamable_http",
        "name": "tech-lead",
        "description": "Überall",
        "uri": ASKING.url,
        "timeout": 300,
        "env_keys": ["MY_TOKEN"],
        "headers": {"Authorization": "Bearer ${MY_TOKEN}"},
    }


@pytest.mark.parametrize("entry", [OPEN, ASKING])
def test_goose_admits_it(entry: Entry) -> None:
    jsonschema.validate(made("goose", entry)["extensions"][entry.name], GOOSE)


@pytest.mark.parametrize("client", ["claude-code", "claude-desktop", "cursor", "inspector"])
def test_somebody_elses_reader_of_mcpservers_takes_it(client: str) -> None:
    """These clients publish no schema; fastmcp has a model of the format that they share."""
    document = made(client, OPEN, ASKING)
    read = MCPConfig.model_validate(document)
    assert set(read.mcpServers) == {"scout", "tech-lead"}
    for name, server in read.mcpServers.items():
        if client == "claude-desktop":
            assert isinstance(server, StdioMCPServer)
        else:
            assert isinstance(server, RemoteMCPServer)
            assert server.url == document["mcpServers"][name]["url"]
            assert infer_transport_type_from_url(server.url) == "http"
        # it has `transport` for what Claude Code and the Inspector call `type`
        assert set(server.model_extra or ()) <= {"type"}


def test_fast_agent_reads_it() -> None:
    for entry in (OPEN, ASKING):
        settings = MCPServerSettings.model_validate(made("fast-agent", entry)["mcp"]["servers"][entry.name])
        assert (settings.transport, settings.url) == ("http", entry.url)


def test_the_inspector_gets_no_token_since_it_reads_no_variables() -> None:
    assert made("inspector", ASKING) == {"mcpServers": {"tech-lead": {"type": "streamable-http", "url": ASKING.url}}}


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://localhost:8101/mcp", []),
        ("https://agents.example/mcp", []),
        ("http://agents.example/mcp", ["--allow-http"]),
    ],
)
def test_claude_desktop_starts_a_bridge(url: str, options: list[str]) -> None:
    entry = Entry("a", url, "A", token=False)
    server = made("claude-desktop", entry)["mcpServers"]["a"]
    assert server == {"command": "npx", "args": ["-y", BRIDGE, url, "--transport", "http-only", *options]}


def test_its_bridge_has_the_token_in_a_variable_and_in_no_argument(tmp_path: Path) -> None:
    """A stand-in for npx shows what the real one would be started with."""
    file = tmp_path / "my token"
    file.write_text("canary-4711\n")
    npx = tmp_path / "npx"
    npx.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nprintf "in the variable: %s\\n" "$PALLAS_TOKEN"\n')
    npx.chmod(0o755)
    text = CLIENTS["claude-desktop"].render([ASKING], Token(file=str(file)))
    server = json.loads(text)["mcpServers"]["tech-lead"]
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([server["command"], *server["args"]], env=environ, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "-y",
        BRIDGE,
        ASKING.url,
        "--transport",
        "http-only",
        "--header",
        "Authorization:Bearer ${PALLAS_TOKEN}",
        "in the variable: canary-4711",
    ]

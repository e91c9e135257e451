"""Two files and the fleet's peers become the one file that fast-agent reads."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_agent_runtime.config import fastagent_yaml
from pallas_agent_runtime.config.fastagent_yaml import HttpServer
from pallas_contract.fleet import source
from pallas_contract.problems import Refused
from tests.problem_lines import without_codes


def build(
    written: str = "",
    secrets: str = "",
    provider: str = "passthrough",
    peers: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
) -> fastagent_yaml.Built:
    trees = [
        source.parse(text, name=name) if text else None
        for text, name in ((written, "fastagent.config.yaml"), (secrets, "fastagent.secrets.yaml"))
    ]
    return fastagent_yaml.build(trees[0], trees[1], prefix=provider, peers=peers or {}, environ=environ or {})


def test_the_runtime_has_the_last_word_on_terminal_files_and_history() -> None:
    data = build("logger: {type: file, level: debug}\nsession_history: true\nmodel_capabilities: {vision: true}").data
    assert data["session_history"] is False
    assert data["logger"]["type"] == "none"
    assert data["logger"]["progress_display"] is False
    assert data["logger"]["level"] == "debug"
    assert "model_capabilities" not in data


@pytest.mark.parametrize(("enabled", "notes"), [("true", 1), ("false", 0)])
def test_fast_agent_sends_no_traces_of_its_own(enabled: str, notes: int) -> None:
    built = build(f"otel: {{enabled: {enabled}, otlp_endpoint: 'http://c:4318/v1/traces'}}")
    assert built.data["otel"] == {"enabled": False}
    assert len([note for note in built.notes if "telemetry" in note]) == notes


@pytest.mark.parametrize(("written", "kept"), [("", 1), ("llm_retries: 0", 0), ("llm_retries: 99", 3)])
def test_retries_are_bounded(written: str, kept: int) -> None:
    assert build(written).data["llm_retries"] == kept


def test_secrets_are_merged_over_the_configuration_and_stay_references() -> None:
    data = build(
        "openai: {api_key: old, default_headers: {a: b}}",
        "openai: {api_key: '${KEY}'}",
        "openai",
        environ={"KEY": "sk-real"},
    ).data
    assert data["openai"]["api_key"] == "${KEY}"
    assert data["openai"]["default_headers"] == {"a": "b"}


def test_peers_are_where_the_plan_says_and_no_server_is_loaded_at_start() -> None:
    written = """
mcp:
  servers:
    argos: {command: argos, args: [-x]}
    research: {url: "http://localhost:1/mcp", headers: {a: b}, load_on_start: true, protocol_mode: legacy}
"""
    built = build(written, peers={"research": "http://research:8080/mcp", "tech_research": "http://tech:8080/mcp"})
    assert built.data["mcp"]["servers"] == {
        "argos": {"command": "argos", "args": ["-x"], "load_on_start": False, "ping_interval_seconds": 0},
        "research": {
            "url": "http://research:8080/mcp",
            "headers": {"a": "b"},
            "transport": "http",
            "load_on_start": False,
        },
        "tech_research": {"url": "http://tech:8080/mcp", "transport": "http", "load_on_start": False},
    }
    assert built.notes == (
        "mcp.servers.research.url: http://localhost:1/mcp is replaced by the fleet's http://research:8080/mcp",
    )


def test_fast_agent_pings_no_program_unless_it_is_told_to() -> None:
    """It ends one that knows no `ping` after three errors; the runtime asks by itself."""
    written = "mcp: {servers: {a: {command: a}, b: {target: npx b}, c: {command: c, ping_interval_seconds: 7}}}"
    servers = build(written).data["mcp"]["servers"]
    assert {name: entry["ping_interval_seconds"] for name, entry in servers.items()} == {"a": 0, "b": 0, "c": 7}


def test_a_key_missing_for_the_active_provider_stops_no_agent() -> None:
    """Seed 001, Startup Preflight: warn-only, agents start regardless. The file is the seed's own."""
    built = build(secrets="openai:\n  api_key: ${OPENAI_API_KEY}\n", provider="openai")
    assert built.notes == (
        "fastagent.secrets.yaml:2:3 openai.api_key: the variable OPENAI_API_KEY is not set; the setting is left out",
    )
    assert built.data["openai"]["api_key"] == fastagent_yaml.NO_KEY


def test_what_is_unset_elsewhere_is_left_out_and_told() -> None:
    written = "mcp: {servers: {argos: {url: '${ARGOS}', headers: {Authorization: 'Bearer ${T}', x: y}}}}"
    built = build(written, "anthropic: {api_key: '${ANTHROPIC_API_KEY}'}", "openai", environ={"OPENAI_API_KEY": "k"})
    assert built.data["anthropic"] == {"api_key": fastagent_yaml.NO_KEY}
    assert built.data["mcp"]["servers"]["argos"]["headers"] == {"x": "y"}
    assert built.data["mcp"]["servers"]["argos"]["url"] == "${ARGOS}"
    assert [note.partition(": ")[2].split(" is ")[0] for note in built.notes] == [
        "the variable ARGOS",
        "the variable T",
        "the variable ANTHROPIC_API_KEY",
    ]


@pytest.mark.parametrize("key", ["url", "target"])
def test_a_server_whose_address_is_unset_is_one_that_nobody_reaches(key: str) -> None:
    """Without it the entry would be of a server that can be neither called nor started."""
    built = build(f"mcp: {{servers: {{argos: {{{key}: '${{ARGOS}}'}}}}}}")
    assert len(built.notes) == 1
    assert fastagent_yaml.http_servers(built.data, {}) == {"argos": HttpServer("${ARGOS}", {})}
    assert fastagent_yaml.nowhere(built.data) == frozenset()


def test_the_base_url_has_a_default() -> None:
    data = build(secrets="openai: {api_key: k, base_url: '${OPENAI_BASE_URL}'}", provider="openai").data
    assert data["openai"]["base_url"] == "${OPENAI_BASE_URL:https://api.openai.com/v1}"
    assert build(secrets="openai: {base_url: 'http://mine'}").data["openai"]["base_url"] == "http://mine"


def test_the_base_url_is_written_where_only_the_environment_has_one() -> None:
    """A module may name a model of the Responses API, whose WebSocket reads no variable."""
    assert "openai" not in build(environ={"OPENAI_API_KEY": "k"}).data
    data = build(environ={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://llm"}).data
    assert data["openai"]["base_url"] == "${OPENAI_BASE_URL:https://api.openai.com/v1}"


@pytest.mark.parametrize(
    ("environ", "section"),
    [({}, {"api_key": fastagent_yaml.NO_KEY}), ({"ANTHROPIC_API_KEY": "k"}, None)],
)
def test_without_any_key_the_agent_still_starts(environ: dict[str, str], section: dict[str, Any] | None) -> None:
    for provider in ("anthropic", "openai", ""):  # its code may name another model than the default one
        assert build(provider=provider, environ=environ).data.get("anthropic") == section


def test_endpoints_are_expanded() -> None:
    written = """
mcp:
  servers:
    argos: {url: "http://${HOST}/mcp", headers: {X-Key: "${KEY}"}}
    gitea: {url: "http://gitea/mcp", access_token: "${KEY}"}
    own: {url: "http://own/mcp", access_token: "${KEY}", headers: {authorization: mine}}
    short: {target: "http://${HOST}", headers: {X-Key: "${KEY}"}, auth: {oauth: false}}
    stream: {url: "http://stream/events", transport: sse, auth: {scope: read}}
    local: {command: x}
    shell: {target: uvx x}
"""
    environ = {"HOST": "argos", "KEY": "k"}
    data = build(written, environ=environ).data
    assert fastagent_yaml.http_servers(data, environ) == {
        "argos": HttpServer("http://argos/mcp", {"X-Key": "k"}),
        "gitea": HttpServer("http://gitea/mcp", {"Authorization": "Bearer k"}),
        "own": HttpServer("http://own/mcp", {"authorization": "mine"}),
        "short": HttpServer("http://argos/mcp", {"X-Key": "k"}),
        "stream": HttpServer("http://stream/events", {}, sse=True, oauth=True),
    }


def test_a_shorthand_for_a_member_of_the_fleet_is_replaced_like_a_url() -> None:
    written = "mcp: {servers: {research: {target: 'http://localhost:1/mcp', headers: {a: b}}}}"
    built = build(written, peers={"research": "http://research:8080/mcp"})
    assert "target" not in built.data["mcp"]["servers"]["research"]
    assert built.notes == (
        "mcp.servers.research.target: http://localhost:1/mcp is replaced by the fleet's http://research:8080/mcp",
    )


def test_a_token_for_a_member_of_the_fleet_is_a_reference_and_replaces_all_others() -> None:
    written = "mcp: {servers: {b: {url: 'http://b/mcp', access_token: old, headers: {authorization: old, X: y}}}}"
    tree = source.parse(written, name="fastagent.config.yaml")
    peers, environ = {"b": "http://b/mcp", "c": "http://c/mcp"}, {"PALLAS_CALL_B_TOKEN": "secret"}
    data = fastagent_yaml.build(
        tree, None, prefix="", peers=peers, environ=environ, presented={"b": "PALLAS_CALL_B_TOKEN"}
    ).data
    assert data["mcp"]["servers"]["b"]["headers"] == {"X": "y", "Authorization": "Bearer ${PALLAS_CALL_B_TOKEN}"}
    assert "secret" not in str(data)
    assert "old" not in str(data)
    assert fastagent_yaml.http_servers(data, environ) == {
        "b": HttpServer("http://b/mcp", {"X": "y", "Authorization": "Bearer secret"}),
        "c": HttpServer("http://c/mcp", {}),
    }


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("http://llm:70000/v1", "has no valid port"),
        ("http://llm:-1/v1", "has no valid port"),
        ("localhost:11434/v1", "is no URL"),
    ],
)
def test_an_active_provider_without_an_address_is_refused_where_it_is_written(url: str, wrong: str) -> None:
    """A turn would send its key to whatever the event loop makes of it; llm:70000 is llm:4464."""
    for written, secrets, place in [
        (f"openai: {{base_url: '{url}'}}", "", "fastagent.config.yaml:1:10 openai.base_url"),
        (
            "openai: {base_url: http://a}",
            f"openai: {{base_url: '{url}'}}",
            "fastagent.secrets.yaml:1:10 openai.base_url",
        ),
        ("", "", "$OPENAI_BASE_URL"),
    ]:
        with pytest.raises(Refused) as refused:
            build(written, secrets, "openai", environ={"OPENAI_BASE_URL": url})
        assert without_codes(str(refused.value)).splitlines()[0] == f"{place}: {wrong}"
        build(written, secrets, environ={"OPENAI_BASE_URL": url})
    build("openai: {base_url: 'http://llm:65535'}", provider="openai", environ={"OPENAI_BASE_URL": url})


def test_servers_that_can_be_neither_called_nor_started() -> None:
    servers = {
        "misspelt": {"comand": "python"},
        "stdio": {"url": "http://x/mcp", "transport": "stdio"},
        "started": {"command": "python"},
        "called": {"url": "http://x/mcp"},
        "short": {"target": "http://x"},
        "connected": {"connector_id": "x"},
    }
    assert fastagent_yaml.nowhere({"mcp": {"servers": servers}}) == {"misspelt", "stdio"}

"""What fastagent.config.yaml and fastagent.secrets.yaml say about a deployment."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.fleet import fastagent


def test_defaults_of_model_capabilities_are_those_of_seed_001(tmp_path: Path) -> None:
    (tmp_path / "fastagent.config.yaml").write_text("default_model: openai.my-model.v1\nmodel_capabilities: {}\n")
    config, problems = fastagent.load(tmp_path)
    assert problems == []
    assert config.provider == "openai"
    assert config.capabilities == fastagent.Capabilities("my-model.v1", False, 131072, 16384)


@pytest.mark.parametrize("model", ["gpt-4.1", "passthrough", "org/m"])
def test_a_model_without_a_provider_is_published_whole(tmp_path: Path, model: str) -> None:
    (tmp_path / "fastagent.config.yaml").write_text(f"default_model: {model}\nmodel_capabilities: {{}}\n")
    assert fastagent.load(tmp_path)[0].capabilities == fastagent.Capabilities(model)


def test_the_default_model_may_stand_in_the_secrets_and_has_the_last_word_there(tmp_path: Path) -> None:
    assert fastagent.load(tmp_path)[0].model_position is None
    (tmp_path / "fastagent.secrets.yaml").write_text("openai: {api_key: x}\ndefault_model: openai.b\n")
    config, problems = fastagent.load(tmp_path)
    assert (config.default_model, problems) == ("openai.b", [])
    assert str(config.model_position) == "fastagent.secrets.yaml:2:1 default_model"
    (tmp_path / "fastagent.config.yaml").write_text("default_model: passthrough\n")
    assert fastagent.load(tmp_path)[0].provider == "openai"
    (tmp_path / "fastagent.secrets.yaml").write_text("default_model: [a]\n")
    config, (problem,) = fastagent.load(tmp_path)
    assert (config.default_model, problem.where.file) == ("passthrough", "fastagent.secrets.yaml")


def test_the_secrets_of_a_container_are_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "fastagent.secrets.yaml").write_text("default_model: openai.b\n")
    (tmp_path / "fastagent.secrets.yaml").write_text("default_model: openai.a\n")
    assert fastagent.load(tmp_path, tmp_path / "mounted")[0].default_model == "openai.b"
    assert fastagent.load(tmp_path, tmp_path / "gone")[0].default_model == "openai.a"


def test_no_capabilities_unless_they_are_configured(tmp_path: Path) -> None:
    assert fastagent.load(tmp_path)[0].capabilities is None
    (tmp_path / "fastagent.config.yaml").write_text("default_model: passthrough\n")
    assert fastagent.load(tmp_path)[0].capabilities is None


def test_variables_without_a_default_with_their_first_place(tmp_path: Path) -> None:
    text = 'openai:\n  api_key: "${KEY}"\n  base_url: "${URL:http://x}"\nanthropic: {api_key: "${KEY}"}\n'
    (tmp_path / "fastagent.secrets.yaml").write_text(text)
    config, _ = fastagent.load(tmp_path)
    assert {name: str(where) for name, where in config.variables.items()} == {
        "KEY": "fastagent.secrets.yaml:2:3 openai.api_key"
    }


def test_servers_with_and_without_url(tmp_path: Path) -> None:
    (tmp_path / "fastagent.config.yaml").write_text(
        "mcp: {servers: {argos: {url: 'http://argos/mcp'}, local: {command: python}}}\n"
    )
    config, _ = fastagent.load(tmp_path)
    assert config.servers == {"argos": "http://argos/mcp", "local": None}


def test_a_server_may_stand_in_either_file_and_the_secrets_have_the_last_word(tmp_path: Path) -> None:
    config = "mcp: {servers: {argos: {url: 'http://argos/mcp'}, tool: {command: python}}}\n"
    (tmp_path / "fastagent.config.yaml").write_text(config)
    secrets = {
        "argos": "headers: {Authorization: x}",
        "atlas": "url: 'https://x/mcp?key=s3cret'",
        "tool": "url: http://t",
    }
    (tmp_path / "fastagent.secrets.yaml").write_text(
        "mcp:\n  servers:\n" + "".join(f"    {name}: {{{said}}}\n" for name, said in secrets.items())
    )
    found, problems = fastagent.load(tmp_path)
    assert problems == []
    assert found.servers == {"argos": "http://argos/mcp", "tool": "http://t/mcp", "atlas": "https://x/mcp?key=s3cret"}
    assert found.commands == {}
    assert {name: str(where) for name, where in found.url_positions.items()} == {
        "argos": "fastagent.config.yaml:1:25 mcp.servers.argos.url",
        "atlas": "fastagent.secrets.yaml:4:13 mcp.servers.atlas.url",
        "tool": "fastagent.secrets.yaml:5:12 mcp.servers.tool.url",
    }


@pytest.mark.parametrize("port", ["70000", "0", "-1", "x"])
def test_a_port_that_is_none_is_refused_in_either_file_and_the_url_not_shown(tmp_path: Path, port: str) -> None:
    (tmp_path / "fastagent.config.yaml").write_text(f"mcp: {{servers: {{a: {{url: 'http://s3cret:{port}/mcp'}}}}}}\n")
    (tmp_path / "fastagent.secrets.yaml").write_text("mcp: {servers: {b: {url: 'http://x:${PORT}/mcp'}}}\n")
    _, (found,) = fastagent.load(tmp_path)
    assert (str(found.where), found.message) == (
        "fastagent.config.yaml:1:21 mcp.servers.a.url",
        "has no valid port",
    )


@pytest.mark.parametrize(
    ("entry", "url", "sse"),
    [
        ({"url": "http://a:1/mcp"}, "http://a:1/mcp", False),
        ({"url": "http://a"}, "http://a/mcp", False),
        ({"url": "http://a/x?k=1"}, "http://a/x?k=1", False),
        ({"url": "http://a/sse"}, "http://a/sse", False),
        ({"url": "http://a/events", "transport": "sse"}, "http://a/events", True),
        ({"target": " http://a/x "}, "http://a/x/mcp", False),
        ({"target": "https://a/sse"}, "https://a/sse", True),
        ({"target": "${URL}"}, "${URL}", False),
        ({"url": "http://[::1"}, "http://[::1", False),
    ],
)
def test_an_address_is_read_as_fast_agent_does(entry: dict[str, str], url: str, sse: bool) -> None:
    assert fastagent.endpoint(entry) == fastagent.Endpoint(url, sse)


@pytest.mark.parametrize(
    "entry",
    [{"command": "x"}, {"target": "npx -y x"}, {"target": "@x/y"}, {"url": "http://a", "transport": "stdio"}, {}],
)
def test_a_program_has_no_address(entry: dict[str, str]) -> None:
    assert fastagent.endpoint(entry) is None


def test_a_target_is_a_server_with_a_place(tmp_path: Path) -> None:
    servers = "{a: {target: 'https://a/mcp'}, b: {target: npx x}, c: {target: 'http://c:0/mcp'}}"
    (tmp_path / "fastagent.config.yaml").write_text(f"mcp: {{servers: {servers}}}\n")
    config, (problem,) = fastagent.load(tmp_path)
    assert config.servers == {"a": "https://a/mcp", "b": None, "c": "http://c:0/mcp"}
    where = "fastagent.config.yaml:1:51 mcp.servers.b.target"
    assert [(name, command.program, str(command.where)) for name, command in config.commands.items()] == [
        ("b", "npx", where)
    ]
    assert str(config.url_positions["a"]) == "fastagent.config.yaml:1:21 mcp.servers.a.target"
    assert (problem.where.field, problem.message) == ("mcp.servers.c.target", "has no valid port")

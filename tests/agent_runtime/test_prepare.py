"""What is read for one agent before anything of fast-agent is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_agent_runtime.prepare import prepare, read_fleet
from pallas_contract.codes import Code
from pallas_contract.validate import load

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"


def test_a_fleet_file_is_checked_anew_when_it_says_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork has what its parent has read: sixty agents would check the file of sixty agents each."""
    checked = []
    check = load.check
    monkeypatch.setattr(load, "check", lambda tree: [checked.append(tree), check(tree)][1])
    file = tmp_path / "agents.yaml"
    for port in (8101, 8101, 8102, 8101):
        file.write_text(FLEET.replace("name: x", f"name: {tmp_path.name}").replace("8101", str(port)))
        fleet, tree, warnings = read_fleet(file)
        assert (fleet.agents["scout"].port, tree.data["agents"]["scout"]["port"]) == (port, port)
        warnings.append(tree.problem("agents", message="of this caller", code=Code.WRONG_VALUE))
        assert len(read_fleet(file)[2]) == len(warnings) - 1
    assert [tree.data["agents"]["scout"]["port"] for tree in checked] == [8101, 8102, 8101]


@pytest.mark.parametrize(
    ("environ", "values"),
    [
        ({}, {"A": "beside", "B": "beside", "C": "here"}),
        ({"A": "set", "C": "set"}, {"A": "set", "B": "beside", "C": "set"}),
        ({"PALLAS_PLACEMENT": "container"}, {"A": "beside", "B": "beside"}),
    ],
)
def test_the_environment_comes_before_the_env_file_beside_and_that_before_the_one_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], values: dict[str, str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / ".env").write_text("A=beside\nB=beside\n")
    (here / ".env").write_text("B=here\nC=here\n")
    prepare(tmp_path / "agents.yaml", "scout", environ, tmp_path / "secrets")
    assert {key: environ[key] for key in ("A", "B", "C") if key in environ} == values


@pytest.mark.parametrize(
    ("keys", "config", "folders"),
    [
        ("", "", ["/dev/null/skills"]),
        (", skills: [.claude/skills]", "", ["{project}/.claude/skills"]),
        ("", "skills: {directories: [a, /b], marketplace_url: 'http://x'}", ["{project}/a", "/b"]),
        (", skills: []", "skills: {directories: [a]}", ["/dev/null/skills"]),
    ],
)
def test_skills_are_those_of_the_fleet_file_else_of_the_configuration(
    tmp_path: Path, keys: str, config: str, folders: list[str]
) -> None:
    (tmp_path / "agents.yaml").write_text(FLEET.replace("8101", f"8101{keys}"))
    (tmp_path / "fast-agent.yaml").write_text(config)
    built = prepare(tmp_path / "agents.yaml", "scout", {}, tmp_path / "secrets").config.data["skills"]
    assert built["directories"] == [path.format(project=tmp_path) for path in folders]
    assert ("marketplace_url" in built) is ("marketplace_url" in config)


@pytest.mark.parametrize("folder", ["", "secrets/"], ids=["beside it", "mounted"])
def test_fast_agents_own_names_are_the_configuration(tmp_path: Path, folder: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "fast-agent.yaml").write_text("default_model: openai.m\nmcp: {servers: {a: {url: 'http://a/mcp'}}}\n")
    (tmp_path / f"{folder}fast-agent.secrets.yaml").write_text("openai: {api_key: sk-canary}\n")
    prepared = prepare(tmp_path / "agents.yaml", "scout", {}, tmp_path / "secrets")
    assert prepared.default_model == "openai.m"
    assert prepared.endpoints["a"].url == "http://a/mcp"
    assert prepared.config.data["openai"]["api_key"] == "sk-canary"


def test_servers_are_probed_as_turns_use_them_but_for_those_that_only_callers_have_a_token_for(tmp_path: Path) -> None:
    """For as long as a turn would wait for their tools."""
    access = "tokens: {me: {file: me.txt}}, forward: [theirs]"
    (tmp_path / "agents.yaml").write_text(FLEET.replace("8101", f"8101, access: {{{access}}}"))
    (tmp_path / "me.txt").write_text("0123456789abcdef0123456789abcdef\n")
    servers = "{ours: {url: 'http://a/mcp'}, theirs: {url: 'http://b/mcp'}}"
    (tmp_path / "fastagent.config.yaml").write_text(f"mcp: {{servers: {servers}}}\n")
    environ = {"PALLAS_CONNECT_TIMEOUT": "7"}
    endpoints = prepare(tmp_path / "agents.yaml", "scout", environ, tmp_path / "secrets").endpoints
    assert {name: (target.lists, target.follow) for name, target in endpoints.items()} == {
        "ours": (7.0, True),
        "theirs": (0.0, True),
    }


@pytest.mark.parametrize("folder", ["", "secrets/"], ids=["beside it", "mounted"])
def test_the_default_model_may_stand_in_the_secrets(tmp_path: Path, folder: str) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / f"{folder}fastagent.secrets.yaml").write_text("default_model: openai.gpt-4.1\n")
    prepared = prepare(tmp_path / "agents.yaml", "scout", {}, tmp_path / "secrets")
    assert prepared.default_model == "openai.gpt-4.1"


def test_what_servers_that_do_not_start_may_not_show(tmp_path: Path) -> None:
    """Secrets of the agent and of the secrets file, whatever their names, and others by their names."""
    (tmp_path / "agents.yaml").write_text(FLEET.replace("8101", "8101, secrets: {PLACE: {file: place.txt}}"))
    (tmp_path / "place.txt").write_text("of the fleet file\n")
    (tmp_path / ".env").write_text("DSN=of the secrets file\nMY_TOKEN=by its name\nREGION=for everybody\n")
    server = "{command: notes, args: [x], env: {PASSWORD: '${SALT:pepper}', LEVEL: debug}}"
    (tmp_path / "fastagent.config.yaml").write_text(f"mcp: {{servers: {{notes: {server}}}}}\n")
    (tmp_path / "fastagent.secrets.yaml").write_text("db: {url: '${DSN}'}\n")
    reasons = prepare(tmp_path / "agents.yaml", "scout", {}, tmp_path / "secrets", allow_plain_secrets=True).reasons
    assert reasons.secrets == {"of the fleet file", "of the secrets file", "by its name", "pepper"}
    assert (reasons.secretive, reasons.command_line("notes")) == (False, "notes x")

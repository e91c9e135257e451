"""What is read for one agent before anything of fast-agent is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_agent_runtime.prepare import prepare

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"


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

"""`pallas add`: the result is right, what was there stays, and half of it is never left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from pallas_agent_runtime.local import supervisor
from pallas_cli import main as command
from pallas_cli.project import add, init
from pallas_gen.project import load
from tests.cli.project.test_init import written
from tests.problem_lines import without_codes


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A first project; it is the working directory."""
    monkeypatch.delenv("PALLAS_AGENTS_CONFIG", raising=False)
    folder = tmp_path / "desk"
    assert command.main(["init", str(folder)]) == 0
    monkeypatch.chdir(folder)
    capsys.readouterr()
    return folder


@pytest.mark.parametrize(
    ("arguments", "file", "entry"),
    [
        (["scout"], "agents/scout.py", {"module": "agents.scout", "port": 24203, "depends_on": ["model"]}),
        (["class"], "agents/class_.py", {"module": "agents.class_", "port": 24203, "depends_on": ["model"]}),
        (["night-owl"], "agents/night_owl.py", {"module": "agents.night_owl", "port": 24203, "depends_on": ["model"]}),
        (
            ["night-owl", "--card", "--port", "24299"],
            "agents/night-owl.md",
            {"card": "agents/night-owl.md", "port": 24299, "depends_on": ["model"]},
        ),
    ],
)
def test_an_agent_is_one_that_both_programs_take(
    arguments: list[str], file: str, entry: dict[str, object], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (project / "agents.yaml").read_text()
    (project / "agents.yaml").chmod(0o640)
    assert command.main(["add", "agent", *arguments]) == 0
    after = (project / "agents.yaml").read_text()
    assert [line for line in before.splitlines() if line not in after.splitlines()] == []
    assert yaml.safe_load(after)["agents"][arguments[0]] == entry
    assert (project / "agents.yaml").stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out.startswith(f"wrote {file}\nchanged agents.yaml\n\nnext:\n  say in {file} ")
    if file.endswith(".py"):
        compile((project / file).read_text(), file, "exec")
    assert load.load(Path("agents.yaml"), {}).warnings == []
    members, _, _ = supervisor.read(project / "agents.yaml", os.environ)
    assert arguments[0] in [member.name for member in members]


def test_a_service_is_one_that_listens_where_it_is_told(project: Path) -> None:
    assert command.main(["add", "service", "weather-eu"]) == 0
    services = yaml.safe_load((project / "agents.yaml").read_text())["services"]
    assert services["weather-eu"] == {"module": "tools.weather_eu", "port": 24203}
    compile((project / "tools" / "weather_eu.py").read_text(), "weather", "exec")
    assert load.load(Path("agents.yaml"), {}).warnings == []


def test_a_service_of_other_people_is_an_image(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["add", "service", "search", "--image", "ghcr.io/example/search:1"]) == 2
    assert without_codes(capsys.readouterr().err) == "--image: needs --port: where it listens in its container\n"
    assert command.main(["add", "service", "search", "--image", "ghcr.io/example/search:1", "--port", "8000"]) == 0
    services = yaml.safe_load((project / "agents.yaml").read_text())["services"]
    assert services["search"] == {"image": "ghcr.io/example/search:1", "port": 8000}


def test_outside_servers_go_into_the_configuration_of_fast_agent(project: Path) -> None:
    assert command.main(["add", "server", "search", "--url", "https://search.example/mcp"]) == 0
    assert command.main(["add", "server", "files", "--command", "npx", "-y", "mcp-files"]) == 0
    text = (project / "fastagent.config.yaml").read_text()
    assert text.startswith("# fast-agent's own configuration.")
    assert yaml.safe_load(text)["mcp"]["servers"] == {
        "search": {"transport": "http", "url": "https://search.example/mcp"},
        "files": {"command": "npx", "args": ["-y", "mcp-files"]},
    }
    (project / "fastagent.config.yaml").unlink()
    assert command.main(["add", "server", "search", "--url", "https://search.example/mcp"]) == 0
    assert list(yaml.safe_load((project / "fastagent.config.yaml").read_text())["mcp"]["servers"]) == ["search"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["agent", "desk"], "agents.yaml:6:3 agents.desk: is there already\n"),
        (["agent", "model"], "agents.yaml:21:3 services.model: is there already\n"),
        (["service", "clerk"], "agents.yaml:12:3 agents.clerk: is there already\n"),
        (["server", "clerk", "--url", "http://x.example/mcp"], "agents.yaml:12:3 agents.clerk: is there already\n"),
        (["server", "model", "--url", "http://x.example/mcp"], "agents.yaml:21:3 services.model: is there already\n"),
        (["server", "x", "--command"], "--command: names no program\n"),
        (
            ["server", "x", "--url", "https://x.example/mcp?api_key=sk-proj-CANARY1canary2canary3"],
            "--url: holds a secret",
        ),
        (["server", "x", "--url", "https://ann:CANARY1canary2canary3@x.example/mcp"], "--url: holds a secret"),
        (
            ["server", "x", "--command", "npx", "--api-key", "sk-proj-CANARY1canary2canary3"],
            "--command: holds a secret",
        ),
        (["server", "x", "--url", "http://"], "--url: is no URL\n    write http://HOST:PORT/mcp, or https\n"),
        (["server", "x", "--url", "http://x.example:99999/mcp"], "--url: has no valid port\n"),
        (["agent", "registry"], "agents.registry: "),
        (["agent", "../x"], "../x: is no name of a member\n"),
        (["agent", "x", "--port", "24210"], "24210"),
        (["agent", "taken"], "agents/taken.py: is there already\n    nothing was written"),
    ],
)
def test_what_is_not_right_changes_nothing(
    arguments: list[str], line: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "agents" / "taken.py").write_text("mine")
    before = written(project.parent)
    assert command.main(["add", *arguments]) == 2
    err = capsys.readouterr().err
    assert line in without_codes(err)
    assert "CANARY" not in err
    assert written(project.parent) == before


def test_a_server_whose_secret_is_a_variable_is_taken(project: Path) -> None:
    url = "https://x.example/mcp?api_key=${X_TOKEN}"
    assert command.main(["add", "server", "x", "--url", url]) == 0
    assert yaml.safe_load((project / "fastagent.config.yaml").read_text())["mcp"]["servers"]["x"]["url"] == url


def test_a_secret_that_was_there_stops_no_addition(project: Path) -> None:
    """That is for `validate` to tell."""
    with (project / "fastagent.config.yaml").open("a") as file:
        file.write("anthropic: {api_key: sk-ant-a1B2c3D4e5F6g7H8}\n")
    assert command.main(["add", "server", "x", "--url", "https://x.example/mcp"]) == 0


def test_a_server_that_is_there_is_refused_at_its_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["add", "server", "search", "--url", "https://search.example/mcp"]
    assert command.main(arguments) == 0
    before = written(project)
    assert command.main(arguments) == 2
    assert without_codes(capsys.readouterr().err).startswith(
        "fastagent.config.yaml:9:5 mcp.servers.search: is there already\n"
    )
    assert written(project) == before


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("mcp: text\n", "fastagent.config.yaml:1:1 mcp"),
        ("- x\n", "fastagent.config.yaml:1:1"),
        ("mcp: {servers: [search]}\n", "fastagent.config.yaml:1:7 mcp.servers"),
    ],
)
def test_a_configuration_of_another_shape_is_refused(
    text: str, place: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "fastagent.config.yaml").write_text(text)
    assert command.main(["add", "server", "search", "--url", "https://search.example/mcp"]) == 2
    assert without_codes(capsys.readouterr().err).startswith(f"{place}: must be a mapping\n")
    assert (project / "fastagent.config.yaml").read_text() == text


def test_a_fleet_that_is_wrong_already_is_told_first(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "agents.yaml").write_text("name: x\nagents: {}\n")
    assert command.main(["add", "agent", "x"]) == 2
    assert capsys.readouterr().err.startswith("agents.yaml:2:1 agents: ")


def test_the_entry_is_shown_where_no_place_is_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "fastagent.config.yaml").write_text("mcp: {servers: null}\n")
    assert command.main(["add", "server", "search", "--url", "https://search.example/mcp"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fastagent.config.yaml mcp.servers: no place for `search` could be found")
    assert "write it yourself:\nsearch:\n  transport: http\n  url: https://search.example/mcp\n" in error


def test_a_disk_that_fails_leaves_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(project)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(add.os, "replace", fail)
    assert command.main(["add", "agent", "scout"]) == 1
    assert written(project) == before


def test_an_edit_meanwhile_is_not_lost(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = init.write

    def edit(*arguments: object) -> None:
        (project / "agents.yaml").write_text("mine")
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(init, "write", edit)
    assert command.main(["add", "agent", "scout"]) == 2
    assert (project / "agents.yaml").read_text() == "mine"
    assert not (project / "agents" / "scout.py").exists()


def test_a_link_stays_one(project: Path) -> None:
    (project / "agents.yaml").rename(project / "fleet.yaml")
    (project / "agents.yaml").symlink_to("fleet.yaml")
    assert command.main(["add", "agent", "scout"]) == 0
    assert (project / "agents.yaml").is_symlink()
    assert "scout:" in (project / "fleet.yaml").read_text()


def test_a_link_stands_for_the_project_that_it_leads_to(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "agents.yaml").symlink_to(project / "agents.yaml")
    monkeypatch.chdir(tmp_path / "deploy")
    assert command.main(["add", "agent", "scout"]) == 0
    assert (project / "agents" / "scout.py").exists()
    assert [path.name for path in (tmp_path / "deploy").iterdir()] == ["agents.yaml"]
    assert f"../{project.name}/agents.yaml" in capsys.readouterr().out


def test_a_linked_configuration_stays_a_link(project: Path, tmp_path: Path) -> None:
    config = project / "fastagent.config.yaml"
    config.rename(tmp_path / "shared.yaml")
    config.symlink_to(tmp_path / "shared.yaml")
    assert command.main(["add", "server", "search", "--url", "https://search.example/mcp"]) == 0
    assert config.is_symlink()
    assert "search:" in (tmp_path / "shared.yaml").read_text()

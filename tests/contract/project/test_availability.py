"""What of a server this machine lacks; nothing is started to find out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definition, Definitions
from pallas_contract.fleet import fastagent
from pallas_contract.problems import Problem, Where
from pallas_contract.project import availability
from pallas_contract.validate import load

HERE = {"python": sys.executable, "python3": "/opt/other/python3", "uvx": "/bin/uvx"}


def command(folder: Path, entry: str) -> fastagent.Command:
    (folder / "fastagent.config.yaml").write_text(f"mcp:\n  servers:\n    notes: {entry}\n")
    config, _ = fastagent.load(folder)
    return config.commands["notes"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("{command: npx}", "there is no program `npx` here"),
        ("{command: uvx, args: [x]}", ""),
        ("{command: /opt/nope/server}", "there is no program `/opt/nope/server` here"),
        ("{command: ../nope}", "there is no program `../nope` here"),
        ("{command: ../nope, cwd: '${PLACE}'}", ""),
        ("{command: ./nope}", ""),
        ("{command: ~/nope}", ""),
        ("{command: '${NOPE}'}", ""),
        ("{command: npx, env: {PATH: /opt}}", ""),
        (f"{{command: {sys.executable}}}", ""),
        ("{command: python, args: [-m, nope]}", "there is no module `nope` here"),
        ("{command: python, args: [-u, -m, nope.server, --port, '1']}", "there is no module `nope.server` here"),
        ("{command: python, args: [-m, json.tool]}", ""),
        ("{command: python, args: [-m, local.server]}", ""),
        ("{command: python, args: [-m, single]}", ""),
        ("{command: python, args: [-m, nope], cwd: /opt}", ""),
        ("{command: python, args: [-m, '${NOPE}']}", ""),
        ("{command: python3, args: [-m, nope]}", ""),
        ("{command: python, args: [nope.py]}", ""),
    ],
)
def test_reasons(entry: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    (tmp_path / "single.py").touch()
    assert availability.missing(command(tmp_path, entry), tmp_path, HERE.get) == reason


def test_a_file_that_may_not_be_executed(tmp_path: Path) -> None:
    path = tmp_path / "server"
    path.touch(0o644)
    assert (
        availability.missing(command(tmp_path, f"{{command: {path}}}"), tmp_path)
        == f"`{path}` may not be executed here"
    )


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("{command: no-such-uvx}", "install it (`uvx` comes with uv"),
        ("{command: /opt/nope/server}", "correct the path, install it there"),
        ("{command: python, args: [-m, nope]}", "correct the name, or install the package"),
    ],
)
def test_the_remedy(entry: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    (problem,) = availability.problem(command(tmp_path, entry), tmp_path)
    assert problem.message.endswith(" here: as a process the agent is without this server")
    assert (problem.level, hint in problem.hint) == ("warning", True)


UNCLEAR = (
    Problem(Where("scout.py"), "`load_agents` adds agents from elsewhere", level="warning", code=Code.UNKNOWN_SERVER),
)


@pytest.mark.parametrize(
    ("servers", "unclear", "members", "count"),
    [(("notes",), (), "", 1), ((), (), "", 0), ((), UNCLEAR, "", 1), (("notes",), (), "services: {notes: %s}", 0)],
)
def test_only_servers_that_somebody_may_use(
    servers: tuple[str, ...], unclear: tuple[Problem, ...], members: str, count: int, tmp_path: Path
) -> None:
    members = members % "{module: x, port: 8102}" if members else ""
    (tmp_path / "agents.yaml").write_text(f"name: x\nagents: {{scout: {{module: scout, port: 8101}}}}\n{members}\n")
    fleet, _, _ = load.load(tmp_path / "agents.yaml")
    command(tmp_path, "{command: no-such-uvx}")
    config, _ = fastagent.load(tmp_path)
    definition = Definition("scout", "agent", Where("scout.py"), servers=servers)
    definitions = {"scout": Definitions((definition,), unclear)}
    assert len(list(availability.problems(fleet, config, definitions, tmp_path))) == count

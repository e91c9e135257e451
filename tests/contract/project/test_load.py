"""Both files and the code of a project, checked in one go; the rules have their own tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_contract.project import code, load

FILES = {
    "agents.yaml": "name: x\nagents:\n  scout: {module: scout, port: 8101}\n",
    "scout.py": 'from fast_agent import FastAgent\nfast = FastAgent("x")\n'
    '@fast.agent(name="scout", servers=["wether"])\nasync def scout(): ...\n',
    "fastagent.config.yaml": "default_model: passthrough\nopenai: {api_key: sk-proj-a1B2c3D4e5F6g7H8}\n"
    "mcp: {servers: {weather: {url: 'http://w.example/mcp', transport: htp}}}\n",
    ".env": "FOO\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "agents.yaml"


def test_one_run_names_the_problems_of_all_files(project: Path) -> None:
    written, problems = load.check(project, {})
    assert list(written.fleet.agents) == ["scout"]
    assert [(str(problem.where), problem.level) for problem in problems] == [
        ("fastagent.config.yaml:3:56 mcp.servers.weather.transport", "error"),
        ("fastagent.config.yaml:2:10 openai.api_key", "error"),
        ("scout.py:3:36", "error"),
        (".env:1:1", "warning"),
    ]
    _, allowed = load.check(project, {}, allow_plain_secrets=True)
    assert [problem.level for problem in allowed if problem.where.field == "openai.api_key"] == ["warning"]


def test_a_file_that_makes_no_fleet_is_refused_with_what_is_wrong_beside_it(project: Path) -> None:
    project.write_text("name: x\nagents: {scout: {}}\n")
    with pytest.raises(Refused) as refused:
        load.check(project, {})
    assert {problem.where.file for problem in refused.value.problems} == {"agents.yaml", "fastagent.config.yaml"}


def test_a_lock_of_no_use_is_a_warning_before_a_registry_has_it(project: Path) -> None:
    file = project.with_name("agents.lock")
    for content in ("<<<<<<< ours", '{"lock": 2}'):
        file.write_text(content)
        (problem,) = [problem for problem in load.check(project, {})[1] if problem.where.file == "agents.lock"]
        assert (problem.level, problem.message) == ("warning", "is no lock of a fleet")
    file.write_text('{"lock": 1, "name": "x", "version": "1", "agents": {}}')
    assert "agents.lock" not in {problem.where.file for problem in load.check(project, {})[1]}
    file.unlink()
    file.mkdir()
    (problem,) = [problem for problem in load.check(project, {})[1] if problem.where.file == "agents.lock"]
    assert (problem.level, problem.message) == ("warning", "cannot be read: is a directory")


@pytest.mark.parametrize(
    ("script", "uses", "expected"),
    [
        ("def (\n", True, ["srv/notes.py:1:5: is not Python: invalid syntax"]),
        ("def (\n", False, ["warning: srv/notes.py:1:5: is not Python: invalid syntax"]),
        ("import pandas\n", True, ["warning: srv/notes.py:1:1: imports `pandas`, which the agent image does not have"]),
        ("import six\nimport beside\nimport scout\nimport mcp\n", True, []),
        (
            "from mcp.server.fastmcp import FastMCP\n",
            True,
            ["warning: srv/notes.py:1:1: imports `mcp.server.fastmcp`, which version 2 of the MCP SDK"],
        ),
    ],
)
def test_the_script_of_a_server_is_read_as_code(project: Path, script: str, uses: bool, expected: list[str]) -> None:
    folder = project.parent
    entry = "notes: {command: python, args: [srv/notes.py]}, none: {command: sh, args: [-c, x]}"
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {{{entry}}}}}\n")
    (folder / "scout.py").write_text(FILES["scout.py"].replace("wether", "notes" if uses else "none"))
    (folder / ".env").unlink()
    (folder / "srv").mkdir()
    (folder / "srv" / "notes.py").write_text(script)
    (folder / "srv" / "beside.py").touch()
    written, _ = load.read(project, {}, allow_plain_secrets=False)
    definitions = code.definitions(written.fleet, written.text_of)
    problems = list(map(str, load.problems_of_code(written, definitions, {"": frozenset({"six"})})))
    assert [problem[: len(start)] for problem, start in zip(problems, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("program", "script", "expected"),
    [
        ("python", "import pandas\n", ["srv/notes.py:1:1: imports `pandas`, which is not installed here"]),
        (
            "python",
            "from mcp.server.fastmcp import FastMCP\n",
            ["srv/notes.py:1:1: imports `mcp.server.fastmcp`, which version 2 of the MCP SDK here does not have"],
        ),
        ("python", "import six\nimport beside\nimport scout\nimport mcp.server\n", []),
        ("other/python", "import pandas\n", []),
    ],
)
def test_the_script_of_a_server_that_is_a_process_here_is_told_what_it_lacks(
    project: Path, monkeypatch: pytest.MonkeyPatch, program: str, script: str, expected: list[str]
) -> None:
    """Of the Python of another environment nobody knows the packages; the agent starts without the server."""
    folder = project.parent
    (folder / "other").mkdir()
    (folder / "other" / "python").symlink_to(sys.executable)
    (folder / "srv").mkdir()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    entry = f"notes: {{command: {program}, args: [srv/notes.py]}}"
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {{{entry}}}}}\n")
    (folder / "scout.py").write_text(FILES["scout.py"].replace("wether", "notes"))
    (folder / ".env").unlink()
    (folder / "srv" / "notes.py").write_text(script)
    (folder / "srv" / "beside.py").touch()
    _, problems = load.check(project, {}, elsewhere={"six", "mcp", "fast_agent"}.__contains__)
    assert [problem.level for problem in problems] == ["warning"] * len(expected)
    assert [str(problem)[9 : 9 + len(start)] for problem, start in zip(problems, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("config", "environ", "containers", "processes"),
    [
        ("{}", {}, "warning", "error"),
        ("{}", {"FAST_AGENT_MODEL": "passthrough"}, "warning", ""),
        ("defaultmodel: passthrough", {}, "error", "error"),
        ("model: passthrough", {}, "error", "error"),
        ("default_model: passthrough", {}, "", ""),
    ],
)
def test_containers_may_get_their_model_where_they_are_deployed(
    project: Path, config: str, environ: dict[str, str], *, containers: str, processes: str
) -> None:
    (project.parent / "fastagent.config.yaml").write_text(f"{config}\n")
    written, _ = load.read(project, environ, allow_plain_secrets=False)
    definitions = code.definitions(written.fleet, written.text_of)
    in_containers = load.problems_of_code(written, definitions, None)
    for expected, problems in ((containers, in_containers), (processes, load.check(project, environ)[1])):
        levels = [problem.level for problem in problems if "names no model" in problem.message]
        assert levels == ([expected] if expected else [])


LARGE = b"#" * ((1 << 20) + 1)


@pytest.mark.parametrize("uses", [True, False])
@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ({"srv/notes.py": "# coding: latin-1\nname = 'caf\xe9'\n".encode("latin-1")}, []),
        ({"srv/notes.py": b"name = '\xe9'\n"}, ["warning: srv/notes.py: is not UTF-8 text (byte 8) [PAL001]"]),
        ({"srv/notes.py": LARGE}, ["warning: srv/notes.py: is larger than 1 MiB [PAL001]"]),
        ({"srv/notes.py": b"import beside\nimport top\n", "srv/beside.py": LARGE, "top.py": b"\xff"}, []),
    ],
)
def test_a_script_that_cannot_be_read_here_refuses_nothing_and_hides_nothing(
    project: Path, scripts: dict[str, bytes], *, uses: bool, expected: list[str]
) -> None:
    folder = project.parent
    servers = "{notes: {command: python, args: [srv/notes.py]}, none: {command: sh}}"
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {servers}}}\n")
    (folder / "scout.py").write_text(FILES["scout.py"].replace("wether", "notes" if uses else "none"))
    (folder / "srv").mkdir()
    for name, content in scripts.items():
        (folder / name).write_bytes(content)
    written, _ = load.read(project, {}, allow_plain_secrets=False)
    definitions = code.definitions(written.fleet, written.text_of)
    problems = list(map(str, load.problems_of_code(written, definitions, {"": frozenset()})))
    assert [problem for problem in problems if ".env" not in problem] == expected


def test_a_configuration_that_cannot_be_read_hides_nothing_else(project: Path) -> None:
    (project.parent / "fastagent.config.yaml").write_text("mcp: [\n")
    (project.parent / "scout.py").write_text("def (\n")
    _, problems = load.check(project, {})
    assert {problem.where.file for problem in problems} == {"fastagent.config.yaml", "scout.py", ".env"}

"""The files that servers on stdio are started from, and how sure one can be that they are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.fleet import fastagent
from pallas_contract.project import code, programs
from pallas_contract.validate import load
from tests.problem_lines import without_codes

FLEET = "name: x\nagents:\n  scout: {card: scout.md, port: 8101%s}\n"


def found(folder: Path, entry: str, *, servers: str = "notes", keys: str = "", top: str = "") -> list[str]:
    """Return the problems of a project with one server, called notes."""
    (folder / "agents.yaml").write_text(FLEET % keys + top)
    (folder / "scout.md").write_text(f"---\nservers: [{servers}]\n---\nHi\n")
    (folder / "fastagent.config.yaml").write_text(f"mcp:\n  servers:\n    notes: {entry}\n")
    for name in ("here.py", "run.sh", "sub/below.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    fleet, _, _ = load.load(folder / "agents.yaml")
    config, _ = fastagent.load(folder)
    definitions = code.definitions(fleet, code.reader(folder))
    return [without_codes(str(problem)) for problem in programs.problems(fleet, config, definitions, folder)]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{command: python, args: [gone.py]}", "there is no file gone.py, which `python` is to run"),
        ("{command: python3, args: [-u, gone.py, x]}", "there is no file gone.py, which `python3` is to run"),
        ("{command: /usr/bin/python3.13, args: [lib/gone.py]}", "there is no file lib/gone.py, which"),
        ("{command: node, args: [dist/index.js]}", "there is no file dist/index.js, which `node` is to run"),
        ("{command: sh, args: [gone.sh]}", "there is no file gone.sh, which `sh` is to run"),
        ("{command: uv, args: [run, gone.py]}", "there is no file gone.py, which `uv` is to run"),
        ("{command: uv, args: [run, python, gone.py]}", "there is no file gone.py, which `uv` is to run"),
        ("{command: python, args: [here.py], cwd: sub}", "there is no file sub/here.py, which `python` is to run"),
        ("{command: python, args: [here.py], cwd: gone}", "its `cwd` gone is no folder in the project"),
        ("{target: python gone.py}", "there is no file gone.py, which `python` is to run"),
        ("{command: ./gone.sh}", "there is no file gone.sh: the server never starts"),
        (
            "{comand: python}",
            "mcp.servers.notes: `notes` has neither `command` nor `url`: there is nothing to start or to",
        ),
        ("{url: 'http://x.example/mcp', transport: stdio}", "`notes` has neither `command` nor `url`"),
        ("{command: ./run.sh}", "./run.sh may not be executed\n    `chmod +x ./run.sh`"),
    ],
)
def test_what_is_certain_is_an_error(entry: str, message: str, tmp_path: Path) -> None:
    (problem,) = found(tmp_path, entry)
    assert message in problem
    assert problem.startswith("fastagent.config.yaml:3:")


@pytest.mark.parametrize(
    "entry",
    [
        "{command: python, args: [here.py]}",
        "{command: python, args: [below.py], cwd: sub}",
        "{command: python, args: [./sub/../here.py]}",
        "{command: python, args: [-m, gone.py]}",
        "{command: python, args: [-c, pass, gone.py]}",
        "{command: python, args: [-X, dev, gone.py]}",
        "{command: python, args: ['${PLACE}/gone.py']}",
        "{command: python, args: [/opt/gone.py]}",
        "{command: python, args: [../gone.py]}",
        "{command: python, args: [~/gone.py]}",
        "{command: python, args: [gone.py], cwd: /opt}",
        "{command: python, args: [gone.py], cwd: '${PLACE}'}",
        "{command: node, args: [--require, x, gone.js]}",
        "{command: sh, args: [gone]}",
        "{command: uv, args: [run, gone]}",
        "{command: uv, args: [tool, run, gone.py]}",
        "{command: uvx, args: [gone.py]}",
        "{command: npx, args: [-y, gone.js]}",
        "{command: '${PLACE}/gone'}",
        "{command: /opt/gone}",
        "{url: 'http://x.example/gone.py'}",
        "{management: provider, connector_id: connector_dropbox}",
    ],
)
def test_of_what_is_there_or_known_elsewhere_nothing_is_said(entry: str, tmp_path: Path) -> None:
    assert found(tmp_path, entry) == []


@pytest.mark.parametrize(
    "case",
    [{"servers": "other"}, {"keys": ", image: 'mine:1'"}, {"top": "image: {agent: 'mine:1'}\n"}],
    ids=["used by nobody", "own image", "own images"],
)
def test_where_one_cannot_be_sure_it_is_a_warning(case: dict[str, str], tmp_path: Path) -> None:
    (problem,) = found(tmp_path, "{command: python, args: [gone.py]}", **case)
    assert problem.startswith("warning: fastagent.config.yaml:3:37 mcp.servers.notes.args.0: there is no file gone.py")


def test_a_file_of_that_name_elsewhere_is_named(tmp_path: Path) -> None:
    (problem,) = found(tmp_path, "{command: python, args: [below.py]}")
    assert problem.endswith("create it beside agents.yaml, or correct the path: there is sub/below.py")


def test_a_member_of_the_fleet_is_called_and_not_started(tmp_path: Path) -> None:
    member = "services:\n  notes: {module: tides, port: 8102}\n"
    keys = ", depends_on: [notes]"
    assert found(tmp_path, "{command: python, args: [gone.py]}", keys=keys, top=member) == []

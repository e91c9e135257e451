"""Only what is named gets in: by imports, by names in code and cards, by commands of servers, and by `files`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_gen.project import load

FLEET = """\
name: x
defaults: {files: [shared/*.txt]}
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [tools], files: %s}
  other: {card: agents/other.md, port: 8102}
services:
  tools: {module: agents.model, port: 8103}
"""
HEAD = "from fast_agent import FastAgent\nfast = FastAgent('x')\n"
FILES = {
    "backup.sql": "",
    "id_rsa": "",
    "agents/scout.csv": "",
    "agents/__init__.py": "",
    "agents/unused.py": "",
    "agents/scout.py": f"import agents, lib\nfrom .helper import *\n{HEAD}@fast.agent('scout', servers=['near'])\n"
    "async def f(): ...\n",
    "agents/helper.py": "from . import deep\nTABLE = 'data/table.csv'\n",
    "agents/deep.py": "",
    "agents/other.md": "---\nfunction_tools: ['own.py:f']\nskills: [../skills]\n---\n{{file:prompts/a.md}}\n",
    "agents/own.py": "import standalone\ndef f(): ...\n",
    "standalone.py": "",
    "data/table.csv": "",
    "data/more.csv": "",
    "lib/__init__.py": "",
    "lib/rows.json": "",
    "lib/deep/er.py": "import late\n",
    "lib/__pycache__/x.pyc": "",
    "late.py": "",
    "prompts/a.md": "",
    "prompts/b.md": "",
    "skills/one/SKILL.md": "",
    "servers/near.py": "import near_lib\n",
    "servers/far.py": "",
    "near_lib.py": "",
    "shared/all.txt": "",
    "shared/.hidden.txt": "",
    "venv/pyvenv.cfg": "",
}
CONFIG = """\
default_model: passthrough
mcp:
  servers:
    near: {command: python, args: [servers/near.py]}
    far: {command: python, args: [servers/far.py]}
"""
SCOUT = {
    *("agents/__init__.py", "agents/scout.py", "agents/helper.py", "agents/deep.py", "data/table.csv", "late.py"),
    *("lib/", "servers/near.py", "near_lib.py", "shared/all.txt"),
}


@pytest.fixture
def project(tmp_path: Path, make):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def read(files: str = "[]"):
        return load.load(make(FLEET % files, fastagent__config__yaml=CONFIG), {}).project.files

    return read


def test_each_gets_what_its_own_code_and_card_name(project) -> None:
    files = project()
    assert set(files["scout"]) == SCOUT
    assert set(files["other"]) == {
        *("agents/other.md", "agents/own.py", "standalone.py", "prompts/a.md", "skills/", "shared/all.txt"),
    }
    assert files["tools"] == ("agents/__init__.py", "agents/model.py")


@pytest.mark.parametrize(
    ("pattern", "more"),
    [
        ("data/", {"data/"}),
        ("data/**", {"data/"}),
        ("data/*.csv", {"data/table.csv", "data/more.csv"}),
        ("backup.sql", {"backup.sql"}),
        ("servers/far.py", {"servers/far.py"}),
        ("shared/.*", {"shared/.hidden.txt"}),
        ("agents/own.py", {"agents/own.py", "standalone.py"}),
        ("lib/rows.json", set()),
    ],
)
def test_files_names_more(project, pattern: str, more: set[str]) -> None:
    within = {"data/table.csv"} if "data/" in more else set()
    assert set(project(f"['{pattern}']")["scout"]) == (SCOUT | more) - within


@pytest.mark.parametrize("pattern", ["nothing.txt", "no/*.csv", "agents.yaml", "venv", "**", "."])
def test_a_pattern_that_names_nothing_is_refused(project, pattern: str) -> None:
    with pytest.raises(Refused, match=r"agents.yaml:4:66 agents.scout.files: there is no file .* that a container may"):
        project(f"['{pattern}']")


def test_a_pattern_of_the_defaults_has_its_place(project, tmp_path: Path) -> None:
    (tmp_path / "shared" / "all.txt").unlink()
    with pytest.raises(Refused, match=r"agents.yaml:2:12 defaults.files: there is no file shared/\*.txt"):
        project()


def test_links_out_of_the_folder_are_refused_where_something_needs_them(project, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "er.py").touch()
    (tmp_path / "unneeded").symlink_to(outside)
    project()
    (tmp_path / "agents" / "deep.py").unlink()
    (tmp_path / "agents" / "deep.py").symlink_to(outside / "er.py")
    (tmp_path / "prompts" / "a.md").unlink()
    (tmp_path / "prompts" / "b.md").unlink()
    (tmp_path / "prompts").rmdir()
    (tmp_path / "prompts").symlink_to(outside)
    with pytest.raises(Refused) as refused:
        project()
    places = [str(problem.where) for problem in refused.value.problems if "is a link out of" in problem.message]
    assert places == ["agents/deep.py"]


def test_a_server_that_is_started_as_a_module_gets_its_code(make) -> None:
    path = make("name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n")
    servers = "{near: {command: python3, args: [-m, tools.server, -m, no.module]}}"
    (path.parent / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {servers}}}\n")
    (path.parent / "tools").mkdir()
    (path.parent / "tools" / "server.py").write_text("import near_lib\n")
    (path.parent / "near_lib.py").touch()
    needed = load.load(path, {}).project.files["scout"]
    assert needed == ("agents/scout.py", "near_lib.py", "tools/server.py")


def test_a_folder_that_code_reads_and_does_not_get_is_named(make, run) -> None:
    path = make("name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n")
    for name in ("data/rows.csv", "agents/prompts/a.md", "agents/notes/b.md", ".cache/c"):
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).touch()
    text = "HERE = Path(__file__).parent\nROWS = Path('data')\nA = HERE / 'prompts' / 'a.md'\nB = HERE / 'notes'\n"
    (path.parent / "agents" / "scout.py").write_text(
        f"{text}C = [Path('.cache'), Path('..'), Path('agents'), 'data']\n{HEAD}"
        "@fast.agent('scout')\nasync def f(): ...\n"
    )
    _, _, err = run("validate", "-f", str(path))
    assert [line for line in err.splitlines() if "names the folder" in line] == [
        "warning: agents/scout.py: names the folder agents/notes, which the container of `scout` does not get",
        "warning: agents/scout.py: names the folder data, which the container of `scout` does not get",
    ]


def test_code_that_cannot_be_read_is_delivered_and_names_nothing(make, run) -> None:
    path = make("name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n")
    folder = path.parent
    (folder / "agents" / "scout.py").write_text(f"{HEAD}@fast.agent('scout', servers=['near'])\nasync def f(): ...\n")
    servers = "{near: {command: python, args: [near.py]}}"
    (folder / "fastagent.config.yaml").write_text(f"default_model: passthrough\nmcp: {{servers: {servers}}}\n")
    (folder / "near.py").write_text("import table\n")
    (folder / "table.py").write_bytes(b"#" * ((1 << 20) + 1))
    assert run("validate", "-f", str(path))[0] == 0
    assert "table.py" in load.load(path, {}).project.files["scout"]

"""What each member is made of: an edit changes the mark of those that it concerns, and of nobody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pallas_agent_runtime.local.watching import snapshot
from pallas_contract.problems import Refused

AGENTS = """\
name: demo
registry_port: 24200
agents:
  desk: {module: agents.desk, port: 24201, depends_on: [clerk, weather], files: [data], secrets: {KEY: {file: key.txt}}}
  clerk: {card: agents/clerk.md, port: 24202}
services:
  weather: {module: tools.weather, port: 24203}
"""
START = "from fast_agent import FastAgent\nfast = FastAgent('x')\n@fast.agent(name='desk')\ndef desk(): ...\n"
CONFIG = "default_model: passthrough\n"
CARD = "---\ntype: agent\nname: clerk\n---\n"
MAYBE = "try:\n    import maybe\nexcept ImportError:\n    maybe = None\n"
FILES = {
    "agents.yaml": AGENTS,
    "agents/__init__.py": "",
    "agents/desk.py": f"{START}from agents import words\n{MAYBE}FILES = 'table.csv', 'desk.log', 'desk.db'\n",
    "agents/words.py": "",
    "agents/clerk.md": f"{CARD}{{{{file:prompts/clerk.txt}}}}\n",
    "prompts/clerk.txt": "be kind",
    "table.csv": "1",
    "desk.log": "",
    "desk.db": "",
    "data/a.txt": "1",
    "key.txt": "canary-of-a-key",
    "tools/weather.py": "from tools import sky\n",
    "tools/sky.py": "",
    "notes.txt": "",
    "fastagent.config.yaml": CONFIG,
}
BEFORE = {"agents/desk.py": START, "agents/clerk.md": CARD, "fastagent.config.yaml": CONFIG}
"""What an edit of a file begins with, so that it is right."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def concerned(project: Path) -> Callable[[str, str], set[str]]:
    """Return a function that writes a file, and returns the members whose mark is another one then."""
    before = snapshot.take(project / "agents.yaml", {})

    def edit(name: str, text: str) -> set[str]:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(BEFORE.get(name, "") + text)
        after = snapshot.take(project / "agents.yaml", {})
        names = before.marks.keys() | after.marks.keys()
        return {member for member in names if before.marks.get(member) != after.marks.get(member)}

    return edit


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("agents/desk.py", {"desk"}),
        ("agents/words.py", {"desk"}),
        ("table.csv", {"desk"}),
        ("data/a.txt", {"desk"}),
        ("data/b.txt", {"desk"}),
        ("key.txt", {"desk"}),
        ("maybe.py", {"desk"}),
        ("agents/clerk.md", {"clerk"}),
        ("prompts/clerk.txt", {"clerk"}),
        ("tools/sky.py", {"weather"}),
        (".env", {"desk", "clerk"}),
        ("fastagent.config.yaml", {"desk", "clerk"}),
        ("notes.txt", set()),
        ("desk.log", set()),
        ("desk.db", set()),
    ],
)
def test_an_edit_concerns_those_who_have_the_file(
    name: str, members: set[str], concerned: Callable[[str, str], set[str]]
) -> None:
    assert concerned(name, "# another\n") == members


def test_what_is_written_again_as_it_was_concerns_nobody(
    project: Path, concerned: Callable[[str, str], set[str]]
) -> None:
    paths = snapshot.take(project / "agents.yaml", {}).paths
    before = snapshot.stamps(project, paths)
    (project / "agents" / "words.py").unlink()
    assert concerned("agents/words.py", "") == set()
    assert snapshot.stamps(project, paths) != before


@pytest.mark.parametrize(
    ("old", "new", "members"),
    [
        ("port: 24202}", "port: 24202, description: notes}", {"clerk"}),
        ("name: demo", "name: other", {"desk", "clerk", "weather"}),
        ("  clerk: {", "  scout: {card: agents/clerk.md, port: 24209}\n  clerk: {", {"scout", "registry"}),
        ("services:", "# a comment\nservices:", set()),
    ],
)
def test_an_edit_of_the_fleet_file_concerns_those_it_is_about(
    old: str, new: str, members: set[str], concerned: Callable[[str, str], set[str]]
) -> None:
    assert AGENTS.count(old) == 1
    assert concerned("agents.yaml", AGENTS.replace(old, new)) == members


def test_all_files_are_looked_at_also_those_that_may_come(project: Path) -> None:
    paths = snapshot.take(project / "agents.yaml", {}).paths
    assert {"agents.yaml", "agents/words.py", "maybe.py", ".env", "fastagent.config.yaml", "key.txt"} < paths
    assert "notes.txt" not in paths
    assert snapshot.stamps(project, ["maybe.py"]) == {"maybe.py": None}


def test_no_secret_is_in_a_mark(project: Path) -> None:
    assert "canary" not in repr(snapshot.take(project / "agents.yaml", {}).marks)


@pytest.mark.parametrize(
    ("name", "text", "message", "path"),
    [
        ("agents/words.py", "def (", "agents/words.py:1:5: is not Python", "agents/words.py"),
        ("agents/clerk.md", "---\nname: [\n---\n", "agents/clerk.md:3:1: broken YAML", "agents/clerk.md"),
        ("agents/desk.py", f"{START}import new\n", "new.py:1:5: is not Python", "new.py"),
        ("agents/clerk.md", f"{CARD}{{{{file:late.txt}}}}", "agents/clerk.md:5:1: there is no file", "late.txt"),
        ("agents/clerk.md", "---\nfunction_tools: [t.py:f]\n---\n", "agents/clerk.md:2:18", "agents/t.py"),
    ],
)
def test_code_that_is_broken_is_refused_with_the_files_it_may_be_mended_in(
    name: str, text: str, message: str, path: str, project: Path
) -> None:
    (project / "new.py").write_text("def (")
    (project / name).write_text(text)
    with pytest.raises(snapshot.Flawed) as flawed:
        snapshot.take(project / "agents.yaml", {})
    (problem,) = (problem for problem in flawed.value.problems if problem.level == "error")
    assert str(problem).startswith(message)
    assert path in flawed.value.paths


def test_a_secret_in_plain_text_is_refused_where_it_is_not_allowed(project: Path) -> None:
    (project / "fastagent.config.yaml").write_text(f"{CONFIG}openai: {{api_key: sk-proj-a1B2c3D4e5F6g7H8}}\n")
    with pytest.raises(snapshot.Flawed, match="a secret in plain text"):
        snapshot.take(project / "agents.yaml", {})
    problems = snapshot.take(project / "agents.yaml", {}, allow_plain_secrets=True).warnings
    assert any("a secret in plain text" in problem.message for problem in problems)


def test_a_fleet_file_that_is_broken_is_refused(project: Path) -> None:
    (project / "agents.yaml").write_text("name: [")
    with pytest.raises(Refused):
        snapshot.take(project / "agents.yaml", {})

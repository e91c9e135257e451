"""`pallas init`: a project that is right as it stands, and nothing of anybody's is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

from pallas_agent_runtime.local import supervisor
from pallas_cli import main as command
from pallas_cli.arguments import EXAMPLES
from pallas_cli.project import examples, init, starter
from pallas_contract import extras
from pallas_gen.project import load
from pallas_testing.model.reader import read as read_script
from tests.conftest import ROOT
from tests.problem_lines import without_codes


def written(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("arguments", [[], *(["--example", name] for name in EXAMPLES)], ids=str)
def test_both_programs_take_the_project_as_it_is(arguments: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "project"
    assert command.main(["init", str(folder), *arguments]) == 0
    loaded = load.load(folder / "agents.yaml", {})
    assert loaded.warnings == []
    members, _, warnings = supervisor.read(folder / "agents.yaml", os.environ)
    assert [problem for problem in warnings if "replicas" not in str(problem)] == []
    agent = examples.QUESTIONS[arguments[1]][0] if arguments else starter.AGENT
    assert agent in [member.name for member in members if member.kind == "agent"]
    assert {".gitignore", ".env.example", ".github/workflows/fleet.yaml"} < set(written(folder))


def test_the_first_project_has_what_a_project_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "My First Désk!"
    assert command.main(["init", str(folder)]) == 0
    files = written(folder)
    assert yaml.safe_load(files["agents.yaml"])["name"] == "my-first-d-sk"
    assert {".env", "fastagent.secrets.yaml"} < set(files[".gitignore"].splitlines())
    read_script(folder / "standins" / "model.yaml")
    steps = yaml.safe_load(files[".github/workflows/fleet.yaml"])["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step][-1] == "python -m pytest"
    printed = capsys.readouterr().out
    assert f"wrote {folder / 'agents' / 'desk.py'}\n" in printed
    question = f'pallas call desk "{starter.MESSAGE}"'
    assert printed.endswith(f"next:\n  cd {folder}\n  pallas up        # {init._UP}\n  {question}\n")


def test_an_example_is_the_one_of_the_repository(tmp_path: Path) -> None:
    assert command.main(["init", str(tmp_path), "--example", "data-pool"]) == 0
    example = ROOT / "examples" / "03-data-pool"
    rooms = ("agents", "elsewhere", "hosts", "standins", "tests/faults")
    for path in (*(path for room in rooms for path in example.glob(f"{room}/*.py")), *example.glob("*.yaml")):
        if path.name != "compose.yaml":
            assert (tmp_path / path.relative_to(example)).read_text() == path.read_text()


def test_an_example_comes_with_its_documents_and_names_what_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["init", str(tmp_path), "--example", "percolate"]) == 0
    assert "next:\n" in (printed := capsys.readouterr().out)
    assert "  pip install -r requirements.lock\n  pallas up " in printed
    example = ROOT / "examples" / "04-percolate"
    brought = (
        *example.glob("documents/**/*.*"),
        *example.glob("percolate/**/*.py"),
        example / "requirements.lock",
        example / "pytest.ini",
    )
    for path in brought:
        assert (tmp_path / path.relative_to(example)).read_bytes() == path.read_bytes()


def test_secrets_of_an_example_are_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["init", str(tmp_path), "--example", "atlas"]) == 0
    example = ROOT / "examples" / "05-atlas"
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert made.keys() == {path.name for path in (example / "secrets").iterdir()}
    assert len({*made.values(), *(path.read_text() for path in (example / "secrets").iterdir())}) == 2 * len(made)
    for path in (*example.glob("home_tools/**/*.py"), example / "home_tools" / "tools.yaml"):
        assert (tmp_path / path.relative_to(example)).read_text() == path.read_text()
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    printed = capsys.readouterr().out
    assert 'PALLAS_TOKEN=$(cat secrets/phone.txt) pallas call family "How is the weather?"\n' in printed


@pytest.mark.parametrize(("mask", "usual"), [(0o022, 0o644), (0o077, 0o600)])
def test_others_of_this_machine_read_no_secret_and_containers_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int, usual: int
) -> None:
    (tmp_path / "before" / "secrets").mkdir(parents=True)  # of somebody, as open as folders are
    (tmp_path / "before" / "secrets").chmod(0o755)
    umask = os.umask(mask)
    try:
        for folder in ("new", "before"):
            assert command.main(["init", str(tmp_path / folder), "--example", "atlas", "--quiet"]) == 0
    finally:
        os.umask(umask)
    modes = {
        folder: {path.stat().st_mode & 0o777 for path in (tmp_path / folder / "secrets").iterdir()}
        for folder in ("new", "before")
    }
    assert modes == {"new": {0o644}, "before": {0o600}}
    assert (tmp_path / "new" / "secrets").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "agents.yaml").stat().st_mode & 0o777 == usual
    monkeypatch.chdir(tmp_path / "new")
    assert [str(warning) for warning in load.load(Path("agents.yaml"), {}).warnings] == []


def test_nothing_is_written_where_a_file_of_the_project_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "desk.py").write_text("mine")
    (tmp_path / "agents.yaml").symlink_to(tmp_path / "nowhere")
    assert command.main(["init", str(tmp_path)]) == 2
    assert written(tmp_path) == {"agents/desk.py": "mine"}
    error = without_codes(capsys.readouterr().err)
    assert f"{tmp_path}/agents.yaml: is there already\n    nothing was written" in error
    assert f"{tmp_path}/agents/desk.py: is there already\n" in error


def test_what_is_beside_the_fleet_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    assert command.main(["init", str(tmp_path)]) == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert f"left {tmp_path / '.gitignore'} as it is\n" in capsys.readouterr().out


def test_a_disk_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    files = {**starter.files("x"), next(iter(starter.beside())).parent / "x" / "y": ""}
    (tmp_path / ".github").write_text("no folder")
    with pytest.raises(OSError, match="directory"):
        init.write(tmp_path, files)
    assert written(tmp_path) == {".github": "no folder"}


def test_what_is_not_installed_is_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "missing", lambda *_: ["mcp"])
    monkeypatch.chdir(tmp_path)
    assert command.main(["init"]) == 0
    assert "next:\n  pip install 'pallas-kit[all]'\n  pallas up" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "name"),
    [("Desk", "desk"), ("мой флот", "fleet"), ("1st", "fleet"), ("a_b", "a-b"), ("x" * 60, "x" * 40), ("", "fleet")],
)
def test_a_fleet_is_called_like_its_folder(folder: str, name: str) -> None:
    assert init.fleet_name(folder) == name


def test_an_installation_without_examples_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(examples, "_CANDIDATES", (tmp_path,))
    with pytest.raises(FileNotFoundError, match="missing from this installation"):
        examples.files("hello")


def test_generated_files_of_an_example_are_not_copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "01-hello", tmp_path / "01-hello")
    (tmp_path / "01-hello" / "compose.yaml").write_text("")
    (tmp_path / "01-hello" / "agents" / "x.pyc").write_text("")
    monkeypatch.setattr(examples, "_CANDIDATES", (tmp_path,))
    assert sorted(map(str, examples.files("hello"))) == [
        "agents.yaml",
        "agents/hello.md",
        "fastagent.config.yaml",
        "tests/test_hello.py",
    ]

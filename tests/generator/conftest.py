"""A project folder to compile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer.main

from pallas_gen import cli
from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import load
from pallas_gen.targets.compose import running
from tests.problem_lines import without_codes

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write agents.yaml and other files; of every module the file names nobody can read what agents it defines."""

    def write(agents_yaml: str, **files: str) -> Path:
        tmp_path.chmod(0o755)
        (tmp_path / "agents").mkdir(exist_ok=True)
        for name in ("scout", "other", "model"):
            if not (tmp_path / "agents" / f"{name}.py").exists():
                (tmp_path / "agents" / f"{name}.py").write_text("fast = None\n")
        (tmp_path / "agents" / "model.py").write_text("fast = None  # listens on PALLAS_BIND\n")
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text)
        path = tmp_path / "agents.yaml"
        path.write_text(agents_yaml)
        return path

    return write


@pytest.fixture(autouse=True)
def containers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The containers that docker lists for any project, as lines; none to begin with, whatever runs on this machine."""
    lines: list[str] = []
    monkeypatch.setattr(running, "listed", lambda project: "\n".join(lines))
    return lines


@pytest.fixture(autouse=True, scope="session")
def commands() -> Iterator[None]:
    """The commands are made once: typer makes all of them of their functions whenever one is called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def run(capsys, monkeypatch):
    """Call the command line; returns (exit code, stdout, stderr without the codes of problems)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["pallas-gen", *arguments])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        output = capsys.readouterr()
        return int(exit_.value.code or 0), output.out, without_codes(output.err)

    return call


@pytest.fixture
def plan(make: Make) -> Callable[..., Plan]:
    """The plan of an agents.yaml text."""

    def build(agents_yaml: str, **files: str) -> Plan:
        loaded = load.load(make(agents_yaml, **files), {}, allow_plain_secrets=True)
        return build_plan(loaded.fleet, loaded.config, loaded.project)

    return build

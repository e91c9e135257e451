"""The table of targets: one row is one verb, with the options that all of them have."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
import typer
from click.testing import Result
from typer.main import get_command
from typer.testing import CliRunner

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen import cli
from pallas_gen.commands.targets import add_commands
from pallas_gen.output import write
from pallas_gen.plan import build_plan
from pallas_gen.project import load
from pallas_gen.targets.base import RenderContext, Target
from pallas_gen.targets.table import TARGETS

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"
SHARED = [
    "path",
    "--file",
    "--output",
    "--check",
    "--diff",
    "--stdout",
    "--force",
    "--allow-plain-secrets",
    "--quiet",
    "--verbose",
]
TOY = Target(
    name="toy",
    summary="Write a toy.",
    noun="toy",
    files=(PurePosixPath("toy.txt"),),
    render=lambda context: {
        PurePosixPath("toy.txt"): f"{context.plan.name} {context.project} {sorted(context.options)}\n"
    },
    problems=lambda plan: [
        Problem(
            Where(plan.source), "toys break", level="warning" if plan.isolated else "error", code=Code.PROCESS_LIMIT
        )
    ],
    folder="toys",
    options={"with-wheels": "Four of them."},
    next_steps=lambda context: [f"play in {context.output.name} of {context.loaded.folder.name}"],
)


@pytest.fixture
def toy(make):
    """Call the verb of a row that nobody knows, over a fleet of one agent."""
    app = typer.Typer()
    add_commands(app, [*TARGETS, TOY])

    def call(*arguments: str, text: str = ONE) -> Result:
        return CliRunner().invoke(app, ["toy", "-f", str(make(text)), *arguments])

    return call


def test_a_row_is_a_verb(toy, tmp_path: Path) -> None:
    done = toy()
    assert done.exit_code == 0
    assert (tmp_path / "toys" / "toy.txt").read_text() == "x .. []\n"
    assert done.stdout.splitlines()[0].startswith("wrote ")
    assert done.stdout.splitlines()[1] == f"play in toys of {tmp_path.name}"
    assert done.stderr == "warning: agents.yaml: toys break [PAL518]\n"


def test_it_has_the_options_of_all(toy, tmp_path: Path) -> None:
    assert toy("--stdout", "--with-wheels").stdout == "x .. ['with-wheels']\n"
    assert toy("--check").exit_code == 1
    assert toy("--diff").stdout.endswith("+x .. []\n")
    assert [path.name for path in tmp_path.iterdir() if path.name == "toys"] == []
    assert toy("-o", str(tmp_path)).exit_code == 0
    (tmp_path / "toy.txt").write_text("mine\n")
    refused = toy("-o", str(tmp_path))
    assert isinstance(refused.exception, Refused)
    assert toy("-o", str(tmp_path), "--force").exit_code == 0
    assert (tmp_path / "toy.txt").read_text() == "x . []\n"


def test_what_it_cannot_do_is_refused(toy, tmp_path: Path) -> None:
    done = toy(text=f"networks: flat\n{ONE}")
    assert isinstance(done.exception, Refused)
    assert not (tmp_path / "toys").exists()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_row_of_ours_has_the_same_options(target: Target) -> None:
    command = get_command(cli.app).commands[target.name]  # type: ignore[attr-defined]
    assert command.get_short_help_str(200) == target.summary
    options = [option.opts[-1] for option in command.params]
    assert [name for name in options if name[2:] not in target.options] == SHARED


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_row_names_the_record_that_it_writes(make, tmp_path: Path, target: Target) -> None:
    loaded = load.load(make(ONE), {})
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    assert write.sums_among(target.render(RenderContext(loaded, plan, tmp_path / "out"))) == target.sums()

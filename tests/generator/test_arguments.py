"""Options before the verb, and verbs of the kit's other commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command

from pallas_cli import arguments as pallas
from pallas_gen import arguments, cli

FLEET = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101}\n"


@pytest.mark.parametrize(
    ("line", "arranged"),
    [
        ("-f x validate", "validate -f x"),
        ("--file=x -q explain network", "explain network --file=x -q"),
        ("--format json diff a b -- c", "diff a b --format json -- c"),
        ("validate -f x", "validate -f x"),
        ("-f x", "-f x"),
        ("-f", "-f"),
        ("-f x --help", "-f x --help"),
        ("--version", "--version"),
        ("--unknown x validate", "--unknown x validate"),
        ("", ""),
    ],
)
def test_options_before_the_verb_go_behind_it(line: str, arranged: str) -> None:
    assert arguments.arranged(line.split()) == arranged.split()


def test_a_command_takes_them_there(make, run) -> None:
    path: Path = make(FLEET)
    assert run("-f", str(path), "validate") == run("validate", "-f", str(path))
    assert run("-q", "-f", str(path), "explain", "network")[0] == 0


@pytest.mark.parametrize("verb", sorted(arguments.OTHERS))
def test_a_verb_of_another_command_is_answered_with_it(run, verb: str) -> None:
    assert run("-q", verb, "--all") == (2, "", f"there is no command `{verb}`: {arguments.OTHERS[verb]}\n")


def test_the_verbs_of_pallas_are_known_and_none_is_one_of_ours() -> None:
    assert pallas.MODULES.keys() <= arguments.OTHERS.keys()
    assert get_command(cli.app).commands.keys() & arguments.OTHERS.keys() == set()  # type: ignore[attr-defined]

"""Everything that commands share: the fleet file's option, exit codes, problems on stderr."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from pallas_contract import names
from pallas_contract.problems import Problem
from pallas_contract.validate import plain_secrets
from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import load

# exit codes: done, the world is not as needed, the input is wrong
OK = 0
WORLD = 1
INPUT = 2

AgentsFile = Annotated[Path, typer.Option("-f", "--file", envvar=names.ENV_AGENTS_CONFIG, help="The fleet file.")]
DEFAULT_FILE = Path(names.AGENTS_FILE)


AllowPlainSecrets = Annotated[
    bool, typer.Option(plain_secrets.ALLOW, help="Warn of secrets in plain text instead of refusing them.")
]


def read_plan(
    file: Path, *, mounted: bool = True, allow_plain_secrets: bool = False, relock: bool = False
) -> tuple[load.Loaded, Plan]:
    """Read the project of a fleet file, print its warnings and decide its plan.

    `mounted`: containers see the files themselves, so that it matters who may read them. `allow_plain_secrets` makes
    warnings of secrets in plain text, and `relock` lets a lock of servers be out of date.

    Raises:
        Refused: with every error in the fleet file and beside it.
    """
    loaded = load.load(file, os.environ, allow_plain_secrets=allow_plain_secrets, relock=relock)
    report([*loaded.warnings, *(loaded.unreadable if mounted else ())])
    return loaded, build_plan(loaded.fleet, loaded.config, loaded.project)


def report(problems: Iterable[Problem]) -> None:
    """Print problems to stderr, one after the other."""
    for problem in problems:
        typer.echo(str(problem), err=True)

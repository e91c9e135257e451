"""Everything that commands share: the fleet file's option, exit codes, problems on stderr."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pallas_contract import names
from pallas_contract.problems import Problem

if TYPE_CHECKING:
    from pallas_gen.plan import Plan
    from pallas_gen.project.load import Loaded

# exit codes: done, the world is not as needed, the input is wrong
OK = 0
WORLD = 1
INPUT = 2

AgentsFile = Annotated[Path, typer.Option("-f", "--file", envvar=names.ENV_AGENTS_CONFIG, help="The fleet file.")]
DEFAULT_FILE = Path(names.AGENTS_FILE)


AllowPlainSecrets = Annotated[
    bool, typer.Option(names.ALLOW_PLAIN_SECRETS, help="Warn of secrets in plain text instead of refusing them.")
]


def read_plan(
    file: Path, *, mounted: bool = True, allow_plain_secrets: bool = False, relock: bool = False
) -> tuple[Loaded, Plan]:
    """Read the project of a fleet file, print its warnings and decide its plan.

    `mounted`: containers see the files themselves, so that it matters who may read them. `allow_plain_secrets` makes
    warnings of secrets in plain text, and `relock` lets a lock of servers be out of date.

    Raises:
        Refused: with every error in the fleet file and beside it.
    """
    from pallas_gen.plan import build_plan
    from pallas_gen.project import load

    loaded = load.load(file, os.environ, allow_plain_secrets=allow_plain_secrets, relock=relock)
    report([*loaded.warnings, *(loaded.unreadable if mounted else ())])
    return loaded, build_plan(loaded.fleet, loaded.config, loaded.project)


def report(problems: Iterable[Problem]) -> None:
    """Print problems to stderr, one after the other."""
    for problem in problems:
        typer.echo(str(problem), err=True)

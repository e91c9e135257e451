"""Filling the environment before anything is read: secret files, `.env`, and the plan's own variables.

Nothing overwrites a variable that is already set (seed 001, `.env`); earlier sources win over later ones.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from io import StringIO
from pathlib import Path

from dotenv import dotenv_values

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import program
from pallas_contract.launch import secret_files as launch_secrets
from pallas_service import secret_text

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fill(
    fleet: ResolvedFleet,
    tree: Source,
    name: str,
    *,
    project: Path,
    environ: MutableMapping[str, str],
    secrets: Path,
    cwd: Path | None = None,
) -> None:
    """Add to `environ` what agent `name` finds in `secrets` (a folder), in agents.yaml and in `.env`.

    The `.env` beside agents.yaml comes before that of the working directory `cwd` (seed 001); a container has none.

    Raises:
        Refused: a secret file that is there, or that agents.yaml names, cannot be read.
    """
    variables = secret_files(secrets)
    known = launch_secrets.of_agent(fleet, name)
    defined = environ.keys() | variables.keys()
    variables |= secret_text.variables(known, tree, defined, project=project, secrets=secrets)
    dotenvs = [dotenv(project, secrets), dotenv(cwd, cwd) if cwd else {}]
    for source in (variables, program.agent(fleet, name, "local").env, *dotenvs):
        for key, value in source.items():
            environ.setdefault(key, value)


def secret_files(folder: Path) -> dict[str, str]:
    """Return key -> value of every file in `folder` that has the name of a variable, without one trailing newline.

    Raises:
        Refused: one of them cannot be read.
    """
    if not folder.is_dir():
        return {}
    # Kubernetes mounts `..data` and a dated folder beside the files: neither has the name of a variable.
    paths = [path for path in sorted(folder.iterdir()) if _KEY.fullmatch(path.name) and path.is_file()]
    return {path.name: secret_text.value(secret_text.read(path)) for path in paths}


def dotenv(project: Path, secrets: Path) -> dict[str, str]:
    """Return the variables of `.env`; references inside a value are left to the reader of the value.

    Raises:
        Refused: the file is there and cannot be read.
    """
    path = choose(names.DOTENV_FILE, project, secrets)
    if path is None:
        return {}
    values = dotenv_values(stream=StringIO(secret_text.read(path)), interpolate=False)
    return {key: value for key, value in values.items() if value is not None}


def choose(file_name: str, project: Path, secrets: Path) -> Path | None:
    """Return the file of that name in the secrets folder, else in the project's.

    A container masks the project's copy with /dev/null, which is no regular file.
    """
    return next((path for path in (secrets / file_name, project / file_name) if path.is_file()), None)

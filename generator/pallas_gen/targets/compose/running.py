"""The engine of this machine -> what stands in the way of `docker compose up`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.launch import compose_containers
from pallas_contract.problems import Problem, Where

_PATIENCE = 5.0
"""Seconds for the engine; one that is elsewhere and away must not hold up what writes files."""


def problems(project: str, file: Path) -> Iterator[Problem]:
    """Yield a warning where containers of the compose project of `file` are those of another file than `file`."""
    project = compose_containers.project_name(project, file.parent, os.environ)
    if other := compose_containers.other_file(listed(project), file):
        message = f"its compose project `{project}` has containers of {other}"
        hint = (
            "`docker compose up` here makes those anew with the files here, and `down` removes them; "
            "for two fleets side by side change `name` and the ports in agents.yaml"
        )
        yield Problem(Where(os.path.relpath(file)), message, hint, "warning", code=Code.SAME_COMPOSE_PROJECT)


def listed(project: str) -> str:
    """Return who made the containers of a project.

    Nothing where docker is not here, or does not answer: the compose file may be for another machine.
    """
    command = compose_containers.listing(f"label={compose_containers.PROJECT_LABEL}={project}")
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout

"""The names of fast-agent's two files, and which of them a project has; the one place that knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where

CONFIG = ("fastagent.config.yaml", "fast-agent.yaml", "fast-agent.config.yaml")
"""The configuration: the name of seed 001 first, then those of fast-agent 0.10."""
SECRETS = ("fastagent.secrets.yaml", "fast-agent.secrets.yaml")
"""The secrets: the name of seed 001 first, then that of fast-agent 0.10."""
ALL = frozenset({*CONFIG, *SECRETS})


def config(folder: Path) -> Path | None:
    """Return the configuration in `folder`, None where there is none.

    Raises:
        Refused: it has several, as fast-agent itself refuses them, or cannot be looked into.
    """
    return _only(folder, CONFIG)


def secrets(*folders: Path) -> Path | None:
    """Return the secrets file in the first of `folders` that has one.

    Raises:
        Refused: that folder has several, or cannot be looked into.
    """
    return next((path for folder in folders if (path := _only(folder, SECRETS))), None)


def _only(folder: Path, file_names: Sequence[str]) -> Path | None:
    # A container masks the project's secrets with /dev/null, which is no regular file.
    try:
        paths = [path for name in file_names if (path := folder / name).is_file()]
    except OSError as error:
        hint = "the user who runs this must be able to enter the folder"
        raise Refused(
            [Problem(Where(file_names[0]), f"cannot be looked at: {error.strerror}", hint, code=Code.UNREADABLE_FILE)]
        ) from None
    if len(paths) > 1:
        first, second = (path.name for path in paths[:2])
        hint = "move all of it into one of them and remove the other"
        raise Refused(
            [
                Problem(
                    Where(second),
                    f"is there, and so is {first}: only one of them can hold",
                    hint,
                    code=Code.TWO_CONFIGURATIONS,
                )
            ]
        )
    return paths[0] if paths else None

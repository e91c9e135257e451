"""The containers of a compose project, and which compose file made them.

Compose knows a project by its name alone. A copy of a fleet in another folder has the same name, and `up` there makes
the first one's containers anew, with the files of the copy.
"""

from __future__ import annotations

import os
from pathlib import Path

PROJECT_LABEL = "com.docker.compose.project"
_FILES_LABEL = f"{PROJECT_LABEL}.config_files"
"""Paths of the compose files with commas between them, the overriding ones too (compose writes it)."""
_KIND_LABEL = "io.pallas-kit.kind"
_FOREIGN = "service"
"""Kind of the containers that may have no file of the project, so that `up` elsewhere leaves them, label and all."""


def listing(*filters: str) -> list[str]:
    """Return the command of docker that lists who made the containers with any of the ids, or the label, in `filters`.

    Each is `id=...` or `label=KEY=VALUE`. Containers that have ended count: `up` makes these anew too.
    """
    form = f'{{{{.Label "{_KIND_LABEL}"}}}}\t{{{{.Label "{_FILES_LABEL}"}}}}'
    return ["docker", "ps", "--all", "--format", form, *(word for text in filters for word in ("--filter", text))]


def other_file(listed: str, file: Path) -> Path | None:
    """Return the compose file that made the containers `listed`, where that is there and is not `file`; else None.

    A file that is gone was moved here or thrown away: nobody would look for its containers there.
    """
    own = os.path.realpath(file)
    for line in sorted(listed.splitlines()):
        kind, _, made_by = line.partition("\t")
        paths = [made_by, *made_by.split(",")]
        if kind == _FOREIGN or own in map(os.path.realpath, paths):
            continue
        for path in paths:
            if os.path.isfile(path):
                return Path(path)
    return None

"""The build that resolves the MCP servers of a fleet: its context, and how to read what it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from pallas_gen.dependencies import bake, server_locks
from pallas_gen.dependencies.launch import Package
from pallas_gen.dependencies.recipe import Recipe
from pallas_gen.dependencies.server_locks import Locks
from pallas_gen.targets import image

DOCKERFILE = "Dockerfile.lock"

# The base of the agent image, so that the same Python and the same settings resolve that install later.
_TEXT = """\
FROM {python} AS resolved
RUN --mount=type=bind,target=/build {settings} \\
    /usr/local/bin/python3 /build/bake.py lock /build/servers.json
FROM scratch
COPY --from=resolved {locks} {failures} /
"""


def write(folder: Path, packages: Iterable[Package], python: str) -> None:
    """Write the context of a build from the image `python` that resolves `packages` into `folder`, which is there."""
    sources = resources.files("pallas_gen.dependencies")
    for name in ("bake.py", "tools.lock"):
        (folder / name).write_text((sources / name).read_text("utf-8"), "utf-8")
    (folder / "servers.json").write_text(Recipe(servers=tuple(packages)).server_list(), "utf-8")
    (folder / DOCKERFILE).write_text(
        _TEXT.format(python=python, settings=image.SETTINGS, locks=bake.LOCKS, failures=bake.FAILURES), "utf-8"
    )


def read(output: Path) -> tuple[Locks, dict[str, str]]:
    """Return what the build left in the folder `output`: locks, and why a server has none, both by `Package.key`."""
    failures: dict[str, str] = json.loads((output / bake.FAILURES.name).read_text("utf-8"))
    return server_locks.resolved((output / bake.LOCKS.name).read_text("utf-8")), failures

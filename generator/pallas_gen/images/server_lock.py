"""The build that resolves the MCP servers of a fleet: its context, and how to read what it leaves."""

from __future__ import annotations

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
FROM python:3.13-slim AS resolved
RUN --mount=type=bind,target=/build {settings} \\
    /usr/local/bin/python3 /build/bake.py lock /build/servers.json
FROM scratch
COPY --from=resolved {result} /
"""


def write(folder: Path, packages: Iterable[Package]) -> None:
    """Write the context of a build that resolves `packages` into `folder`, which is there."""
    sources = resources.files("pallas_gen.dependencies")
    for name in ("bake.py", "tools.lock"):
        (folder / name).write_text((sources / name).read_text("utf-8"), "utf-8")
    (folder / "servers.json").write_text(Recipe(servers=tuple(packages)).server_list(), "utf-8")
    (folder / DOCKERFILE).write_text(_TEXT.format(settings=image.SETTINGS, result=bake.LOCKS), "utf-8")


def read(output: Path) -> Locks:
    """Return what the build left in the folder `output`."""
    return server_locks.resolved((output / bake.LOCKS.name).read_text("utf-8"))

"""`pallas-gen lock`: versions and hashes of everything that the MCP servers on stdio bring along."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from pallas_gen.commands import build_settings
from pallas_gen.console import DEFAULT_FILE, WORLD, AgentsFile, read_plan
from pallas_gen.dependencies import server_locks
from pallas_gen.dependencies.launch import Package
from pallas_gen.dependencies.server_locks import Locks
from pallas_gen.images import docker, server_lock
from pallas_gen.output import write

Upgrade = Annotated[bool, typer.Option("--upgrade", help="Resolve all servers again, to the newest versions allowed.")]


def add_lock(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("lock")(_lock)


def _lock(file: AgentsFile = DEFAULT_FILE, *, upgrade: Upgrade = False) -> None:
    """Write servers.lock.json: all that `uvx` and `npx` would fetch for MCP servers, with hashes, for the build."""
    # of the configuration nothing but command lines is looked at here
    loaded, _ = read_plan(file, mounted=False, allow_plain_secrets=True, relock=True)
    wanted = server_locks.packages(loaded.config.commands.values())
    if not wanted:
        typer.echo("no MCP server comes from PyPI or npm: there is nothing to lock")
        return
    locks = {} if upgrade else dict(loaded.project.server_locks)
    if missing := [package for package in wanted if package.key not in locks]:
        locks |= _resolve(missing)
    files = {PurePosixPath(server_locks.FILE): server_locks.render(locks, wanted)}
    changed = write.write(files, loaded.folder, force=True)
    path = os.path.relpath(loaded.folder / server_locks.FILE)
    typer.echo(f"{'wrote' if changed else 'unchanged'} {path}")
    if changed:
        option = ["-f", str(file)] if file != DEFAULT_FILE else []
        typer.echo(f"next: commit it, and run {shlex.join(['pallas-gen', 'build', *option])}")


def _resolve(packages: Sequence[Package]) -> Locks:
    """Return the lock of each package, resolved in a container with Python and Node of the images."""
    if not shutil.which("docker"):
        typer.echo("docker is not here: servers are resolved in the image that they are installed in", err=True)
        raise typer.Exit(WORLD)
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch, "context")
        context.mkdir()
        server_lock.write(context, packages)
        options = build_settings.options(Path(scratch))
        command = docker.export(str(context / server_lock.DOCKERFILE), str(context), f"{scratch}/out", options)
        typer.echo(f"resolving {', '.join(package.specifier for package in packages)}")
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:  # noqa: S603
            typer.echo(f"this failed: {shlex.join(command)}", err=True)
            raise typer.Exit(WORLD)
        return server_lock.read(Path(scratch, "out"))

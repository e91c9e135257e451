"""What `pallas-gen lock` does: resolve the MCP servers on stdio that have no lock, and write what all of them have."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import typer

from pallas_gen.commands import tool
from pallas_gen.commands.building import build_settings
from pallas_gen.console import DEFAULT_FILE, WORLD, note, read_plan
from pallas_gen.dependencies import server_locks
from pallas_gen.dependencies.launch import Package
from pallas_gen.dependencies.server_locks import Locks
from pallas_gen.images import build_log, docker, server_lock
from pallas_gen.output import write

_BUILD_FAILED = (
    f"docker could not do this build; nothing was written. Mend what it says and run {server_locks.COMMAND} again"
)


def run(file: Path, *, upgrade: bool) -> None:
    """Write the lock of the fleet in `file`; with `upgrade` every server is resolved again.

    Raises:
        typer.Exit: a server could not be resolved.
    """
    # of the configuration nothing but command lines is looked at here
    loaded, _ = read_plan(file, mounted=False, allow_plain_secrets=True, relock=True)
    wanted = server_locks.packages(loaded.config.commands.values())
    if not wanted:
        return
    locks = dict(loaded.project.server_locks)
    stale = [package for package in wanted if upgrade or package.key not in locks]
    new, failures = _resolve(stale, loaded.fleet.image.python) if stale else ({}, {})
    locks |= new
    complete = all(package.key in locks for package in wanted)
    # what could be resolved is kept, so that mending one server waits for no other
    if new or complete:
        _write(loaded.folder, server_locks.render(locks, wanted), file if complete and not failures else None)
    if failures:
        _report_failures(stale, failures, locks)
        raise typer.Exit(WORLD)


def _write(folder: Path, text: str, file: Path | None) -> None:
    """Write the lock and say so; with `file`, the fleet file, also what comes next."""
    changed = write.write({PurePosixPath(server_locks.FILE): text}, folder, force=True)
    note(f"{'wrote' if changed else 'unchanged'} {os.path.relpath(folder / server_locks.FILE)}")
    if changed and file:
        option = ["-f", str(file)] if file != DEFAULT_FILE else []
        note(f"next: commit it, and run {shlex.join(['pallas-gen', 'build', *option])}")


def _report_failures(packages: Iterable[Package], failures: Mapping[str, str], locks: Locks) -> None:
    for package in packages:
        if package.key in failures:
            reason = failures[package.key].replace("\n", "\n  ")
            former = ", and keeps the versions that it had" if package.key in locks else ""
            typer.echo(f"{package.specifier} cannot be resolved{former}:\n  {reason}", err=True)
    typer.echo(f"mend this and run {server_locks.COMMAND} again; what it could resolve it keeps", err=True)


def _resolve(packages: Sequence[Package], python: str) -> tuple[Locks, dict[str, str]]:
    """Return lock or reason of each package by its key, from a container with Node, made from the image `python`."""
    if not shutil.which("docker"):
        typer.echo("docker is not here: servers are resolved in the image that they are installed in", err=True)
        raise typer.Exit(WORLD)
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch, "context")
        context.mkdir()
        server_lock.write(context, packages, python)
        options = build_settings.options(Path(scratch))
        command = docker.export(str(context / server_lock.DOCKERFILE), str(context), f"{scratch}/out", options)
        note(f"resolving {', '.join(package.specifier for package in packages)}")
        try:
            tool.run(command)
        except tool.ToolFailed as failure:
            reason = build_log.reason(failure.output)
            typer.echo("\n".join(filter(None, (str(failure), _BUILD_FAILED, *reason))), err=True)
            raise typer.Exit(WORLD) from None
        return server_lock.read(Path(scratch, "out"))

"""One command for each row of the table of targets, all with the same options."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pallas_contract.problems import refuse_errors
from pallas_gen.console import (
    OK,
    WORLD,
    AllowPlainSecrets,
    FleetOption,
    FleetPath,
    command,
    fleet_file,
    note,
    read_plan,
    report,
)
from pallas_gen.targets.base import RenderContext, Target

if TYPE_CHECKING:
    from pallas_gen.output.write import Files

_FLAGS = {
    "check": "Write nothing; exit 1 when a file would change.",
    "diff": "Write nothing; show what would change.",
    "stdout": "Write nothing; print the files.",
    "force": "Overwrite files that were edited by hand.",
}


def add_commands(app: typer.Typer, targets: Iterable[Target]) -> None:
    """Add the command of each target to `app`."""
    for target in targets:
        command(app, target.name, f"pallas-gen {target.name} desk", help=target.summary)(_command(target))


def _command(target: Target) -> Callable[..., None]:
    def run(
        path: Path | None, *, option: Path | None, output: Path | None, allow_plain_secrets: bool, **flags: bool
    ) -> None:
        file = fleet_file(path, option)
        loaded, plan = read_plan(file, mounted=target.mounted, allow_plain_secrets=allow_plain_secrets)
        report(refuse_errors(target.problems(plan)))
        folder = (output or loaded.folder / target.folder).resolve()
        # a flag of the target alone is no argument of what writes the files
        options = frozenset([name for name in target.options if flags.pop(_parameter(name))])
        context = RenderContext(loaded, plan, folder, options)
        files = target.render(context)
        if not flags["stdout"]:
            files = {**files, **target.beside(context)}
        if _deliver(files, folder, **flags):
            for line in target.next_steps(context):
                note(line)
            report(target.conflicts(context))

    # typer makes the options from the signature
    run.__signature__ = inspect.Signature(list(_parameters(target)))  # type: ignore[attr-defined]
    return run


def _parameters(target: Target) -> Iterator[inspect.Parameter]:
    """Yield the block of options that all targets share; those of the target alone stand in its middle."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    yield inspect.Parameter("path", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=FleetPath)
    yield inspect.Parameter("option", keyword, default=None, annotation=FleetOption)
    default = f"`{target.folder}` beside the file" if target.folder else "beside the file"
    output = typer.Option("-o", "--output", help=f"Folder to write to. Default: {default}.")
    yield inspect.Parameter("output", keyword, default=None, annotation=Annotated[Path | None, output])
    for option, summary in (dict(target.options) | _FLAGS).items():
        flag = typer.Option(f"--{option}", help=summary)
        yield inspect.Parameter(_parameter(option), keyword, default=False, annotation=Annotated[bool, flag])
    yield inspect.Parameter("allow_plain_secrets", keyword, default=False, annotation=AllowPlainSecrets)


def _parameter(option: str) -> str:
    return option.replace("-", "_")


def _deliver(files: Files, folder: Path, *, check: bool, diff: bool, stdout: bool, force: bool) -> bool:
    """Write the files, or show them. Returns whether they were written.

    Raises:
        typer.Exit: after `check` and `diff`.
    """
    from pallas_gen.output import write

    if stdout:
        for name, text in sorted(files.items()):
            typer.echo(text if len(files) == 1 else f"# {name}\n{text}", nl=False)
        return False
    if check or diff:
        changes = write.differences(files, folder)
        if diff:
            typer.echo("\n".join(changes), nl=bool(changes))
        elif changes:
            typer.echo(f"{len(changes)} of {len(files)} files in {folder} would change", err=True)
        raise typer.Exit(WORLD if changes else OK)
    written = write.write(files, folder, force=force)
    for name in sorted(files):
        path = folder / name
        note(f"{'wrote' if path in written else 'unchanged'} {os.path.relpath(path)}")
    return True

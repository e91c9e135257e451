"""`pallas-gen build`: the images of a fleet, from what is installed here."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pallas_gen.console import WORLD, AllowPlainSecrets, FleetOption, FleetPath, command, fleet_file, note, report
from pallas_gen.images.docker import Cluster

_PRINTED = "pallas-images"

Base = Annotated[bool, typer.Option("--base", help="The kit's own images only, also where they are; needs no fleet.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write the kit's build context to this folder, and build nothing.")
]
Push = Annotated[bool, typer.Option("--push", help="Push them to the registry in their names.")]
Load = Annotated[Cluster | None, typer.Option("--load", help="Copy them to the nodes of a cluster on this machine.")]
Print = Annotated[bool, typer.Option("--print", help="Print the commands, and run none.")]


def add_build(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "build", "pallas-gen build desk --push")(_build)


def _build(
    path: FleetPath = None,
    *,
    option: FleetOption = None,
    base: Base = False,
    output: Output = None,
    push: Push = False,
    load: Load = None,
    print_: Print = False,
    allow_plain_secrets: AllowPlainSecrets = False,
) -> None:
    """Build the images that are not here: the kit's own, from the installed version, and those of the fleet."""
    from pallas_gen.commands.building import build_images

    file = fleet_file(path, option)
    wanted = (
        build_images.Wanted.of_nobody()
        if base and not file.is_file()
        else build_images.Wanted.of_fleet(file, base=base, allow_plain_secrets=allow_plain_secrets)
    )
    if print_:
        for line in build_images.printed(wanted, str(output or _PRINTED), push=push, cluster=load):
            typer.echo(line)
    elif output:
        wanted.write(output)
        note(f"wrote {output}\nnext: {shlex.join(['pallas-gen', 'build', '--print', '-o', str(output)])}")
    elif not shutil.which("docker"):
        typer.echo("docker is not here. `-o DIR` writes the build context, `--print` says what to run there", err=True)
        raise typer.Exit(WORLD)
    elif load and not shutil.which(load):
        remedy = "Install it, push the images to a registry with `--push`, or carry them over with `docker save`"
        typer.echo(f"{load} is not here; nothing was built. {remedy}", err=True)
        raise typer.Exit(WORLD)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            build_images.run(wanted, Path(scratch), push=push, cluster=load)
        report(wanted.conflicts())

"""`pallas-gen build`: the images of a fleet, from what is installed here."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pallas_contract import names
from pallas_contract.fleet import images as image_names
from pallas_contract.fleet.images import ResolvedImages
from pallas_contract.fleet.model import Images
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.console import DEFAULT_FILE, WORLD, AgentsFile, read_plan
from pallas_gen.images import docker, pip_settings, sources, steps
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
    app.command("build")(_build)


def _build(
    file: AgentsFile = DEFAULT_FILE,
    *,
    base: Base = False,
    output: Output = None,
    push: Push = False,
    load: Load = None,
    print_: Print = False,
) -> None:
    """Build the images that are not here: pallas-agent and pallas-registry, from the installed version."""
    image = _names(file, base=base)
    if print_:
        for line in _printed(image, output, push=push, cluster=load):
            typer.echo(line)
    elif output:
        sources.write(output)
        typer.echo(f"wrote {output}\nnext: {shlex.join(['pallas-gen', 'build', '--print', '-o', str(output)])}")
    elif shutil.which("docker"):
        with tempfile.TemporaryDirectory() as scratch:
            _run(image, Path(scratch), base=base, push=push, cluster=load)
    else:
        typer.echo("docker is not here. `-o DIR` writes the build context, `--print` says what to run there", err=True)
        raise typer.Exit(WORLD)


def _names(file: Path, *, base: bool) -> ResolvedImages:
    """Return the names of the images: those of the fleet, or of none."""
    if not base or file.is_file():
        return read_plan(file, allow_plain_secrets=True)[0].fleet.image
    pattern = os.environ.get(names.ENV_IMAGES)
    if pattern and (flaw := image_names.flaw(pattern)):
        raise Refused([Problem(Where(f"${names.ENV_IMAGES}"), flaw)])
    return image_names.resolve(Images(), pattern)


def _printed(image: ResolvedImages, output: Path | None, *, push: bool, cluster: Cluster | None) -> Iterator[str]:
    folder = str(output or _PRINTED)
    builds = steps.base_images(image, folder)
    yield shlex.join(["pallas-gen", "build", "-o", folder])
    for step in steps.steps(builds, [item.image for item in builds], push=push, cluster=cluster):
        yield shlex.join(step.command)


def _run(image: ResolvedImages, scratch: Path, *, base: bool, push: bool, cluster: Cluster | None) -> None:
    """Build what is not here, or all with `base`; then push and load all of it."""
    sources.write(scratch / "context")
    builds = steps.base_images(image, str(scratch / "context"))
    missing = [item for item in builds if base or not _is_here(item.image)]
    options = _options(scratch) if missing else ()
    images = [item.image for item in builds]
    for step in steps.steps(missing, images, options=options, push=push, cluster=cluster):
        typer.echo(step.doing)
        quiet = None if sys.stdout.isatty() else subprocess.DEVNULL
        if subprocess.run(step.command, check=False, stdout=quiet).returncode:  # noqa: S603
            typer.echo(f"{step.doing} failed: {shlex.join(step.command)}", err=True)
            raise typer.Exit(WORLD)
    for name in images:
        typer.echo(f"{name} is here")


def _is_here(image: str) -> bool:
    return subprocess.run(docker.inspect(image), check=False, capture_output=True).returncode == 0  # noqa: S603


def _options(folder: Path) -> tuple[str, ...]:
    """Return the options by which pip inside a build reaches its index as the one of this machine does.

    They are secrets of the build, written to `folder`: none of them is kept in an image.
    """
    settings = pip_settings.read()
    certificates = pip_settings.certificates(settings, os.environ)
    conf = folder / "pip.conf"
    conf.write_text(pip_settings.pip_conf(settings, certificates=bool(certificates)))
    options = ["--secret", f"id=pip,src={conf}"]
    if certificates:
        options += ["--secret", f"id=certificates,src={certificates}"]
    for variable in docker.PROXIES:
        if os.environ.get(variable):
            options += ["--build-arg", variable]
    return (*options, *([] if sys.stdout.isatty() else ["--quiet"]))

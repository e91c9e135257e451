"""`pallas-gen build`: the images of a fleet, from what is installed here."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pallas_contract import names
from pallas_contract.fleet import images as image_names
from pallas_contract.fleet.images import ResolvedImages
from pallas_contract.fleet.model import Images
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.commands import build_settings, tool
from pallas_gen.console import DEFAULT_FILE, WORLD, AgentsFile, AllowPlainSecrets, read_plan
from pallas_gen.dependencies import server_locks
from pallas_gen.images import docker, sources, steps
from pallas_gen.images.docker import Build, Cluster
from pallas_gen.plan import Plan
from pallas_gen.targets import image

_PRINTED = "pallas-images"
_IN_SCRATCH = (
    "to look into it by hand: `pallas-gen build --print` has the commands, the first writes what they build from"
)

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
    allow_plain_secrets: AllowPlainSecrets = False,
) -> None:
    """Build the images that are not here: the kit's own, from the installed version, and those of the fleet."""
    wanted = (
        _Wanted.of_nobody()
        if base and not file.is_file()
        else _Wanted.of_fleet(file, base=base, allow_plain_secrets=allow_plain_secrets)
    )
    if print_:
        for line in _printed(wanted, str(output or _PRINTED), push=push, cluster=load):
            typer.echo(line)
    elif output:
        wanted.write(output)
        typer.echo(f"wrote {output}\nnext: {shlex.join(['pallas-gen', 'build', '--print', '-o', str(output)])}")
    elif not shutil.which("docker"):
        typer.echo("docker is not here. `-o DIR` writes the build context, `--print` says what to run there", err=True)
        raise typer.Exit(WORLD)
    elif load and not shutil.which(load):
        remedy = "Install it, push the images to a registry with `--push`, or carry them over with `docker save`"
        typer.echo(f"{load} is not here; nothing was built. {remedy}", err=True)
        raise typer.Exit(WORLD)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            _run(wanted, Path(scratch), push=push, cluster=load)


@dataclass(frozen=True)
class _Wanted:
    """The images to build.

    `plan` is that of the fleet whose own images are among them; `again` builds those of the kit also where they are.
    """

    image: ResolvedImages
    again: bool
    plan: Plan | None = None
    folder: Path = Path()

    @classmethod
    def of_nobody(cls) -> _Wanted:
        pattern = os.environ.get(names.ENV_IMAGES)
        if pattern and (flaw := image_names.flaw(pattern)):
            raise Refused([Problem(Where(f"${names.ENV_IMAGES}"), flaw)])
        return cls(image_names.resolve(Images(), pattern), again=True)

    @classmethod
    def of_fleet(cls, file: Path, *, base: bool, allow_plain_secrets: bool) -> _Wanted:
        # only the image with the project's code has its configuration in it
        allowed = allow_plain_secrets or base or not (file.parent / image.FILE).is_file()
        loaded, plan = read_plan(file, allow_plain_secrets=allowed)
        return cls(loaded.fleet.image, again=base, plan=None if base else plan, folder=loaded.folder)

    def write(self, context: Path) -> None:
        """Write everything that is built from, but the code of a fleet, which stays where it is."""
        sources.write(context)
        for name, text in (steps.fleet_dockerfiles(self.plan) if self.plan else {}).items():
            (context / name).write_text(text, "utf-8")

    def advice(self, builds: Iterable[Build]) -> Iterator[str]:
        """Yield what is to be known about the images that are built."""
        names_of_images = {item.image for item in builds}
        for item in self.plan.built if self.plan else ():
            unlocked = len(item.recipe.servers) - len(item.recipe.locks)
            if unlocked and item.image in names_of_images:
                without = f"no {server_locks.FILE}, so its MCP servers get the newest packages of today"
                yield f"{item.image}: {without}; {server_locks.COMMAND} pins them"

    def builds(self, context: str) -> list[Build]:
        """Return what is built in the folder `context`, each image after the one it is made from."""
        base = steps.base_images(self.image, context)
        if self.plan is None:
            return list(base)
        own = [*steps.fleet_images(self.plan, context), *steps.baked_image(self.plan, self.image, self.folder)]
        used = {workload.image for workload in self.plan.workloads} | ({self.image.base} if own else set())
        return [*(item for item in base if item.image in used), *own]


def _printed(wanted: _Wanted, context: str, *, push: bool, cluster: Cluster | None) -> Iterator[str]:
    builds = wanted.builds(context)
    yield shlex.join(["pallas-gen", "build", "-o", context])
    for step in steps.steps(builds, [item.image for item in builds], push=push, cluster=cluster):
        yield shlex.join(step.command)


def _run(wanted: _Wanted, scratch: Path, *, push: bool, cluster: Cluster | None) -> None:
    """Build what is not here, then push and load all of it."""
    context = scratch / "context"
    wanted.write(context)
    builds = wanted.builds(str(context))
    # a user's code changes under one name
    missing = [item for item in builds if wanted.again or item.folder != str(context) or not _is_here(item.image)]
    images = [item.image for item in builds]
    options = build_settings.options(scratch) if missing else ()
    for line in wanted.advice(missing):
        typer.echo(line)
    for step in steps.steps(missing, images, options=options, push=push, cluster=cluster):
        typer.echo(step.doing)
        try:
            tool.run(step.command)
        except tool.ToolFailed as failure:
            again = _IN_SCRATCH if str(context) in step.command else f"this failed: {shlex.join(step.command)}"
            typer.echo("\n".join(filter(None, (str(failure), f"{step.doing} failed", again))), err=True)
            raise typer.Exit(WORLD) from None
    for name in images:
        typer.echo(f"{name} is here")


def _is_here(image: str) -> bool:
    return subprocess.run(docker.inspect(image), check=False, capture_output=True).returncode == 0  # noqa: S603

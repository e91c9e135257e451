"""What `pallas-gen build` does: find out which images are wanted, print the commands that make them, or run these."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet import images as image_names
from pallas_contract.fleet.images import ResolvedImages
from pallas_contract.fleet.model import Images
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.commands import tool
from pallas_gen.commands.building import build_settings
from pallas_gen.console import WORLD, read_plan
from pallas_gen.dependencies import server_locks
from pallas_gen.images import build_log, docker, sources, steps
from pallas_gen.images.docker import Build, Cluster
from pallas_gen.plan import Plan
from pallas_gen.targets import compose, image
from pallas_gen.targets.compose import render, running

_IN_SCRATCH = (
    "to look into it by hand: `pallas-gen build --print` has the commands, the first writes what they build from"
)


@dataclass(frozen=True)
class Wanted:
    """The images to build.

    `plan` is that of the fleet whose own images are among them; `again` builds those of the kit also where they are.
    """

    image: ResolvedImages
    again: bool
    plan: Plan | None = None
    folder: Path = Path()

    @classmethod
    def of_nobody(cls) -> Wanted:
        """Return the kit's own images, by their names without a fleet.

        Raises:
            Refused: the pattern of names in the environment is none.
        """
        pattern = os.environ.get(names.ENV_IMAGES)
        if pattern and (flaw := image_names.flaw(pattern)):
            raise Refused([Problem(Where(f"${names.ENV_IMAGES}"), flaw, code=Code.WRONG_VARIABLE)])
        return cls(image_names.resolve(Images(), pattern), again=True)

    @classmethod
    def of_fleet(cls, file: Path, *, base: bool, allow_plain_secrets: bool) -> Wanted:
        """Return the images of a fleet; the kit's own alone where `base` says so."""
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

    def conflicts(self) -> Iterator[Problem]:
        """Yield warnings about what `docker compose up`, where it comes next, would change."""
        file = self.folder / compose.FILE
        if self.plan and file.is_file():
            with contextlib.suppress(render.NoProjectName):
                yield from running.problems(render.project_name(self.plan.name), file)

    def builds(self, context: str) -> list[Build]:
        """Return what is built in the folder `context`, each image after the one it is made from."""
        base = steps.base_images(self.image, context)
        if self.plan is None:
            return list(base)
        own = [*steps.fleet_images(self.plan, context), *steps.baked_image(self.plan, self.image, self.folder)]
        used = {workload.image for workload in self.plan.workloads} | ({self.image.base} if own else set())
        return [*(item for item in base if item.image in used), *own]


def printed(wanted: Wanted, context: str, *, push: bool, cluster: Cluster | None) -> Iterator[str]:
    """Yield the commands for the shell, with `context` as the folder of the kit's build context."""
    builds = wanted.builds(context)
    yield shlex.join(["pallas-gen", "build", "-o", context])
    for step in steps.steps(builds, [item.image for item in builds], push=push, cluster=cluster):
        yield shlex.join(step.command)


def run(wanted: Wanted, scratch: Path, *, push: bool, cluster: Cluster | None) -> None:
    """Build what is not here, then push and load all of it."""
    context = scratch / "context"
    builds = wanted.builds(str(context))
    # a user's code changes under one name
    python = wanted.image.python
    missing = [item for item in builds if wanted.again or item.folder != str(context) or not _is_here(item, python)]
    images = [item.image for item in builds]
    if missing:
        wanted.write(context)  # 400 files
    options = build_settings.options(scratch) if missing else ()
    for line in wanted.advice(missing):
        typer.echo(line)
    for step in steps.steps(missing, images, options=options, push=push, cluster=cluster):
        typer.echo(step.doing)
        try:
            tool.run(step.command)
        except tool.ToolFailed as failure:
            again = _IN_SCRATCH if str(context) in step.command else f"this failed: {shlex.join(step.command)}"
            # last what a person has to know, for the rest is long
            reason = build_log.reason(failure.output)
            end = "\n".join([f"{step.doing} failed{':' if reason else ''}", *reason])
            typer.echo("\n".join(filter(None, (str(failure), again, end))), err=True)
            raise typer.Exit(WORLD) from None
    for name in images:
        typer.echo(f"{name} is here")


def _is_here(item: Build, python: str) -> bool:
    """Return whether the image of a build is in the local engine, and by its label made from the image `python`.

    A fleet's image has the label of the kit's image that it is made from. One without the label will do where nobody
    has named what to build from.
    """
    done = subprocess.run(docker.inspect(item.image), check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        return False
    label = (json.loads(done.stdout) or {}).get(docker.BASE_LABEL)
    return bool(label == python or (label is None and not item.python))

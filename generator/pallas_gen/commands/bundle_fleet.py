"""What `pallas-gen bundle` does: render, save the images, and write all of it at once or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import typer

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where, refuse_errors
from pallas_gen.bundle import assemble, layout, references, saved_images
from pallas_gen.bundle.assemble import File
from pallas_gen.commands import tool
from pallas_gen.console import WORLD, note, read_plan, report
from pallas_gen.plan import Plan
from pallas_gen.project import contents
from pallas_gen.project.load import Loaded
from pallas_gen.running import tool as asked
from pallas_gen.targets.base import RenderContext, Target
from pallas_gen.targets.compose import FILE
from pallas_gen.targets.helm import render
from pallas_gen.targets.table import TARGETS

_BY_NAME = {target.name: target for target in TARGETS}


def write(file: Path, output: Path | None) -> None:
    """Write the bundle of the fleet in `file`.

    Raises:
        Refused: the project is wrong, or cannot be bundled.
        typer.Exit: docker or an image is not here.
    """
    loaded, plan = read_plan(file)
    target = output or Path(f"{layout.slug(plan.name)}-{layout.slug(plan.version)}.bundle.tar")
    images = sorted({references.tagged(workload.image) for workload in plan.workloads})
    problems = [*references.unloadable(images), *_in_the_way(target)]
    report(refuse_errors([*_BY_NAME["helm"].problems(plan), *_BY_NAME["compose"].problems(plan), *problems]))
    compose = _rendered(_BY_NAME["compose"], loaded, plan, loaded.folder)
    chart = _rendered(_BY_NAME["helm"], loaded, plan, loaded.folder / "chart")
    refuse_errors(references.problems(compose[FILE], chart, dict.fromkeys(images, "")))
    _refuse_missing(images)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        folder = Path(scratch, "bundle")
        folder.mkdir()
        note(f"saving {', '.join(images)}")
        try:
            saved = assemble.save_images(folder, images, _save)
        except saved_images.NotSaved as error:
            typer.echo(f"what docker has saved {error}", err=True)
            raise typer.Exit(WORLD) from None
        described = layout.Contents(
            name=plan.name,
            version=plan.version,
            images={name: image.id for name, image in saved.items()},
            platforms=[image.platform for image in saved.values()],
            secrets=sorted({secret.file for workload in plan.workloads for secret in workload.secrets}),
            outside=[
                f"{workload.name}: {'; '.join(workload.egress)}" for workload in plan.workloads if workload.egress
            ],
            install=next(iter(render.next_steps(plan, layout.CHART, layout.FLEET, ""))).removeprefix("next: "),
        )
        assemble.write(folder, described, fleet=_fleet(loaded, plan, compose), chart=chart)
        if target.suffix == ".tar":
            assemble.pack(folder, Path(scratch, "packed"), target.name.removesuffix(".tar").removesuffix(".bundle"))
            os.replace(Path(scratch, "packed"), target)
        else:
            os.replace(folder, target)
    note(f"wrote {target}, with {len(images)} image{'s' if len(images) != 1 else ''}")
    note(f"there: pallas-gen bundle --verify {target.name}, and what its {layout.README} says")


def _in_the_way(target: Path) -> list[Problem]:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return []
    hint = "move it away, or write elsewhere with `-o`"
    return [Problem(Where(str(target)), "is there already", hint, code=Code.ALREADY_THERE)]


def _rendered(target: Target, loaded: Loaded, plan: Plan, folder: Path) -> dict[PurePosixPath, str]:
    context = RenderContext(loaded, plan, folder)
    return {**target.render(context), **target.beside(context)}


def _fleet(loaded: Loaded, plan: Plan, compose: dict[PurePosixPath, str]) -> dict[PurePosixPath, File]:
    """Return the compose file and all that its containers mount, but for secrets."""
    mounted = contents.read(loaded.folder, plan)
    paths = sorted([*mounted.config, *mounted.files])
    files = {PurePosixPath(path): _file(loaded.folder / path) for path in paths}
    return files | {path: File(text.encode()) for path, text in compose.items()}


def _file(path: Path) -> File:
    return File(path.read_bytes(), os.access(path, os.X_OK))


def _refuse_missing(images: Sequence[str]) -> None:
    """Say which images are not here.

    Raises:
        typer.Exit: one of them.
    """
    missing = []
    for image in images:
        done = asked.run(["docker", "image", "inspect", "--format", "{{.Id}}", image])
        if done is None:
            typer.echo("docker is not here: it saves the images", err=True)
            raise typer.Exit(WORLD)
        if done.code:
            missing.append(image)
    hint = "`pallas-gen build` builds what is the kit's or the fleet's; `docker pull` fetches what is somebody else's"
    report(Problem(Where(image), "is not here", hint, code=Code.IMAGE_MISSING) for image in missing)
    if missing:
        raise typer.Exit(WORLD)


def _save(images: Sequence[str], path: Path) -> None:
    try:
        tool.run(["docker", "save", "--output", str(path), *images])
    except tool.ToolFailed as failure:
        typer.echo(f"{failure}\ndocker could not save the images; nothing was written".lstrip("\n"), err=True)
        raise typer.Exit(WORLD) from None

"""Which images a fleet needs, and the commands that make them, in order; nothing is run here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pallas_contract import __version__
from pallas_contract.fleet import images
from pallas_contract.fleet.images import ResolvedImages
from pallas_gen.dependencies.recipe import BuiltImage
from pallas_gen.images import docker
from pallas_gen.images.docker import Build, Cluster
from pallas_gen.plan import Plan
from pallas_gen.targets import image


@dataclass(frozen=True, slots=True)
class Step:
    """One command, in words (`doing`) and for the shell."""

    doing: str
    command: list[str]


def base_images(names: ResolvedImages, folder: str) -> tuple[Build, Build]:
    """Return how the kit's own two images are built in `folder`, where their build context is."""
    registry = images.image_name(names.names, images.REGISTRY)
    python = "" if names.python == images.PYTHON else names.python
    return (
        Build(names.base, f"{folder}/Dockerfile.agent", folder, __version__, python),
        Build(registry, f"{folder}/Dockerfile.registry", folder, __version__, python),
    )


def fleet_images(plan: Plan, folder: str) -> list[Build]:
    """Return how the images of a fleet are built, by the Dockerfiles in `folder`."""
    return [Build(item.image, f"{folder}/{_file(item)}", folder, plan.version) for item in plan.built]


def baked_image(plan: Plan, names: ResolvedImages, folder: Path) -> list[Build]:
    """Return how the image with the project's code is built: by Dockerfile.fleet, where one was written in `folder`."""
    dockerfile_path = folder / image.FILE
    if names.agent == names.base or names.code != "baked" or not dockerfile_path.is_file():
        return []
    return [Build(names.agent, str(dockerfile_path), str(folder), plan.version)]


def fleet_dockerfiles(plan: Plan) -> dict[str, str]:
    """Return the Dockerfiles of `fleet_images` by name; they need nothing of their context."""
    comment = f"{plan.name}: what its agents need beyond the kit's image, by `pallas-gen build`."
    return {
        _file(item): image.dockerfile(item.recipe, comment, base=plan.base_image, python=plan.python_image)
        for item in plan.built
    }


def _file(item: BuiltImage) -> str:
    return f"Dockerfile.{item.image.rpartition('/')[2].partition(':')[0]}"


def steps(
    builds: Iterable[Build],
    images: Iterable[str],
    *,
    options: tuple[str, ...] = (),
    push: bool = False,
    cluster: Cluster | None = None,
) -> Iterator[Step]:
    """Yield the commands that build what is to be built, and bring all `images` where they are run."""
    for item in builds:
        yield Step(f"building {item.image}", docker.build(item, options))
    for name in images:
        if push:
            yield Step(f"pushing {name}", docker.push(name))
        if cluster:
            yield Step(f"loading {name} into {cluster}", docker.load(name, cluster))

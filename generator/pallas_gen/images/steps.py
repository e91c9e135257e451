"""Which images a fleet needs, and the commands that make them, in order; nothing is run here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pallas_contract import __version__
from pallas_contract.fleet import images
from pallas_contract.fleet.images import ResolvedImages
from pallas_gen.images import docker
from pallas_gen.images.docker import Build, Cluster


@dataclass(frozen=True, slots=True)
class Step:
    """One command, in words (`doing`) and for the shell."""

    doing: str
    command: list[str]


def base_images(names: ResolvedImages, folder: str) -> tuple[Build, Build]:
    """Return how the kit's own two images are built in `folder`, where their build context is."""
    registry = images.image_name(names.names, images.REGISTRY)
    return (
        Build(names.base, f"{folder}/Dockerfile.agent", folder, __version__),
        Build(registry, f"{folder}/Dockerfile.registry", folder, __version__),
    )


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
    for image in images:
        if push:
            yield Step(f"pushing {image}", docker.push(image))
        if cluster:
            yield Step(f"loading {image} into {cluster}", docker.load(image, cluster))

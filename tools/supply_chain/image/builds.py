"""The images of the kit as Docker here builds them, saved to a file."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pallas_contract import __version__, names
from pallas_gen.commands.building import build_settings
from pallas_gen.images import docker, sources
from tools.supply_chain.environment import output

IMAGES = ("pallas-agent", "pallas-registry")
BASE = "python:3.13-slim"


@dataclass(frozen=True, slots=True)
class Base:
    """The image that both are built from."""

    layers: tuple[str, ...]
    """Digests of its layers, uncompressed, the first at first."""
    digests: tuple[str, ...]
    """Names with digest by which a registry has it; empty where it was built on this machine."""


def base() -> Base:
    """Return the base that is here."""
    image = json.loads(output("docker", "image", "inspect", "--format", "{{json .}}", BASE))
    return Base(tuple(image["RootFS"]["Layers"]), tuple(sorted(image.get("RepoDigests") or ())))


def pattern() -> str | None:
    """Return the pattern of image names that is set for this run, as for every command of the kit."""
    return os.environ.get(names.ENV_IMAGES)


def build(name: str, folder: Path, *, cached: bool) -> Path:
    """Build an image of this checkout and return where `docker save` wrote it, in `folder`.

    Its tag is its own and is taken away again: what runs here under the kit's names stays as it is.
    """
    tag = f"pallas-release-{os.getpid()}/{name}:{__version__}"
    saved = folder / "saved.tar"
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch) / "context"
        sources.write(context)
        dockerfile = context / f"Dockerfile.{name.removeprefix('pallas-')}"
        options = build_settings.options(Path(scratch))
        image = docker.Build(tag, str(dockerfile), str(context), __version__)
        output(*docker.build(image, (*options, *(() if cached else ("--no-cache",)))))
    try:
        output("docker", "save", "--output", str(saved), tag)
    finally:
        output("docker", "rmi", tag)
    return saved


def tools() -> dict[str, str]:
    """Return the versions of the programs that decide what a build becomes."""
    return {
        "docker": output("docker", "version", "--format", "{{.Server.Version}}").strip(),
        "buildx": output("docker", "buildx", "version").split()[1],
        "helm": output("helm", "version", "--template", "{{.Version}}").strip(),
        "python": platform.python_version(),
    }

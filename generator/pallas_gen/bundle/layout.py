"""The names in a bundle, its manifest and its README. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pallas_contract import __version__

SUMS = "SHA256SUMS"
MANIFEST = "MANIFEST.json"
README = "README.md"
IMAGES = "images.tar"
FLEET = "fleet"
COMPOSE = f"{FLEET}/compose.yaml"
CHART = f"pallas-{__version__}.tgz"


@dataclass(frozen=True, slots=True)
class Contents:
    """What a bundle says of itself."""

    name: str
    version: str
    images: Mapping[str, str]
    """Name -> id."""
    platforms: Sequence[str]
    secrets: Sequence[str] = ()
    """Files that the fleet needs and a bundle never has, by their paths beside the fleet file."""
    outside: Sequence[str] = ()
    """Why which member may reach the world, in words."""
    install: str = ""
    """The command that installs the chart."""


def slug(text: str) -> str:
    """Return `text` made fit for a file name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "fleet"


def sbom(image: str) -> str:
    """Return the path of the SBOM of an image."""
    return f"sbom/{slug(image)}.cdx.json"


def sboms(images: Iterable[str]) -> dict[str, str]:
    """Return the path of the SBOM of each image; those of names that make one file name are told apart by a digest."""
    paths = {image: sbom(image) for image in images}
    counts = Counter(paths.values())
    return {
        image: path if counts[path] == 1 else sbom(f"{image}-{hashlib.sha256(image.encode()).hexdigest()[:8]}")
        for image, path in paths.items()
    }


def manifest(contents: Contents) -> str:
    """Return the text of the manifest."""
    paths = sboms(contents.images)
    images = [{"name": name, "id": digest, "sbom": paths[name]} for name, digest in sorted(contents.images.items())]
    document = {
        "bundle": 1,
        "kit": __version__,
        "name": contents.name,
        "version": contents.version,
        "platforms": sorted(set(contents.platforms)),
        "images": images,
        "compose": COMPOSE,
        "chart": CHART,
        "secrets": sorted(contents.secrets),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def readme(contents: Contents) -> str:
    """Return the README: three commands, and what nobody can put into a bundle."""
    lines = [
        f"# {contents.name} {contents.version}",
        "",
        "Everything that this fleet runs with, made by `pallas-gen bundle`. Nothing is fetched from outside:",
        "",
        "```sh",
        f"sha256sum --check --quiet --strict {SUMS}",
        f"docker load --input {IMAGES}",
        f"docker compose -f {COMPOSE} up --wait",
        "```",
        "",
        "With pallas-kit, `pallas-gen bundle --verify` on this folder also compares the images. It loads nothing.",
        "",
        f"On Kubernetes, push the images to the registry of the site, or import `{IMAGES}` on the nodes; then",
        "",
        "```sh",
        contents.install,
        "```",
        "",
        f"Images, for {', '.join(sorted(set(contents.platforms)))}:",
        "",
        *(f"- `{name}` {digest}" for name, digest in sorted(contents.images.items())),
    ]
    if contents.secrets:
        lines += ["", f"Secrets are not in it. Put these into `{FLEET}/` first:", ""]
        lines += [f"- `{path}`" for path in sorted(contents.secrets)]
    if contents.outside:
        lines += [
            "",
            "What the fleet calls is up to the site. These may reach the world, or what stands there for it:",
            "",
        ]
        lines += [f"- {line}" for line in contents.outside]
    return "\n".join(lines) + "\n"

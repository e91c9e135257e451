"""Names of images -> digests, where the name has one or this machine's engine knows it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from pallas_gen.running.tool import Run


def digests(images: Collection[str], run: Run) -> dict[str, str]:
    """Return image -> digest: that of its name, else that of a registry, else the id that it has on this machine alone.

    An image of which nothing is known is left out, as all are without docker.
    """
    known = {image: image.partition("@")[2] for image in images if "@" in image}
    for image in sorted(set(images) - known.keys()):
        done = run(["docker", "image", "inspect", "--format", "{{json .}}", image])
        if done is None:  # there is no docker
            break
        if not done.code and (digest := _digest(_parsed(done.output), image)):
            known[image] = digest
    return known


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _digest(document: Mapping[str, Any], image: str) -> str:
    """Return the digest that a registry has of an image, if it comes from there, else its id."""
    repository = _repository(image)
    for reference in sorted(document.get("RepoDigests") or ()):
        name, _, digest = str(reference).partition("@")
        if _repository(name) == repository:
            return digest
    return str(document.get("Id") or "")


def _repository(image: str) -> str:
    """Return the name without its tag; a port is none."""
    head, slash, last = image.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}".removeprefix("docker.io/").removeprefix("library/")

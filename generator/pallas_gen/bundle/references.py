"""Compose file and chart -> the images that they name, and what in them leads out of a bundle. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where
from pallas_gen.output import yaml as yaml_out

CHART = PurePosixPath("Chart.yaml")
VALUES = PurePosixPath("values.yaml")


_LIBRARY = ("docker.io/library/", "index.docker.io/library/", "docker.io/", "index.docker.io/")


def _read(text: str) -> Any:
    return yaml_out.load(text) or {}


def tagged(image: str) -> str:
    """Return the name of an image as docker lists it: with its tag, without the registry that goes without saying."""
    name = next((image.removeprefix(prefix) for prefix in _LIBRARY if image.startswith(prefix)), image)
    return name if "@" in name or ":" in name.rpartition("/")[2] else f"{name}:latest"


def of_compose(text: str) -> set[str]:
    """Return the images of a compose file."""
    services = _read(text).get("services") or {}
    # compose doubles what it would else interpolate
    return {str(service["image"]).replace("$$", "$") for service in services.values() if "image" in service}


def of_chart(files: Mapping[PurePosixPath, str]) -> set[str]:
    """Return the images that the values of a chart name, as its template `pallas.image` puts them together."""
    values = _read(files[VALUES])
    images = values.get("images") or {}
    references = {_reference(images[kind]) for kind in ("agent", "registry") if images.get(kind)}
    members = [values.get("registry"), values.get("gateway"), *_all(values, "agents"), *_all(values, "services")]
    for member in filter(None, members):
        if image := member.get("image"):
            base = {} if member.get("foreign") else images.get("agent") or {}
            references.add(_reference({**base, **image}))
    return references


def _all(values: Mapping[str, Any], section: str) -> list[Any]:
    return list((values.get(section) or {}).values())


def _reference(image: Mapping[str, str]) -> str:
    host = f"{image['registry']}/" if image.get("registry") else ""
    tag = f":{image['tag']}" if image.get("tag") else ""
    digest = f"@{image['digest']}" if image.get("digest") else ""
    return f"{host}{image.get('repository', '')}{tag}{digest}"


def problems(compose: str, chart: Mapping[PurePosixPath, str], images: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what refers to something that is not in a bundle with these `images`, name -> id."""
    for place, references in (("compose.yaml", of_compose(compose)), ("chart", of_chart(chart))):
        for image in sorted(set(map(tagged, references)) - images.keys()):
            yield Problem(Where(place), f"{image} is not in the bundle", code=Code.NOT_IN_BUNDLE)
    for dependency in _read(chart[CHART]).get("dependencies") or ():
        repository = str(dependency.get("repository") or "")
        if repository and not repository.startswith("file://"):
            where = Where(str(CHART), field="dependencies")
            message = f"{dependency.get('name')} comes from {repository}"
            yield Problem(where, message, "put the chart into `charts/`", code=Code.NOT_IN_BUNDLE)


def unloadable(images: Iterable[str]) -> Iterator[Problem]:
    """Yield the images that nobody finds by their names after `docker load`: it keeps tags, and no digests."""
    for image in sorted(images):
        if "@" in image:
            hint = "name it by a tag in the fleet file: the bundle holds it by its digest"
            yield Problem(
                Where(image), "is named by a digest, which `docker load` forgets", hint, code=Code.NOT_IN_BUNDLE
            )

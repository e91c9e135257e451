"""Names of the images: of the kit's two, and of those that are built for one fleet."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from pallas_contract import __version__
from pallas_contract.fleet.base import ImageNames
from pallas_contract.fleet.model import PATTERNS, Images

PYTHON = "python:3.13-slim"
"""What all images are built from, unless `image.python` names another one."""
AGENT = "pallas-agent"
REGISTRY = "pallas-registry"


class ResolvedImages(Images):
    """Image names, each decided."""

    agent: str
    registry: str
    python: str
    base: str
    """The kit's agent image, which those of a fleet are built from."""


def image_name(pattern: str, name: str, tag: str = __version__) -> str:
    """Return `pattern` with `name` in it, and with `tag` where it has none."""
    reference = pattern.replace("{name}", name)
    return reference if ":" in reference.rpartition("/")[2] else f"{reference}:{tag}"


def resolve(images: Images, pattern: str | None = None) -> ResolvedImages:
    """Decide the names of `images`, by `pattern` where there is one: it is stronger than the file's."""
    names = pattern or images.names
    base = image_name(names, AGENT)
    registry = images.registry or image_name(names, REGISTRY)
    decided = {"names": names, "agent": images.agent or base, "registry": registry, "base": base}
    decided["python"] = images.python or PYTHON
    return ResolvedImages(**{key: getattr(images, key) for key in Images.model_fields} | decided)


def flaw(pattern: str) -> str:
    """Return why `pattern` cannot be `image.names`, empty when it can."""
    try:
        TypeAdapter[str](ImageNames).validate_python(pattern)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        return f"must be {PATTERNS.get(fault.get('ctx', {}).get('pattern', ''), fault['msg'])}, not {pattern!r}"
    return ""

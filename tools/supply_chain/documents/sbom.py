"""Components -> the SBOM of an image or of the wheel, as CycloneDX 1.6 in JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pallas_gen.images.inventory import Component
from tools.supply_chain import environment

_TYPES = {"python": "library", "debian": "library", "runtime": "platform"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What an SBOM is of."""

    name: str
    version: str
    type: str
    """`container` or `library`, as CycloneDX calls it."""
    purl: str
    sha256: str
    """Of the wheel, or of the image's manifest."""
    properties: dict[str, str] = field(default_factory=dict)
    licence: str = "Apache-2.0"


def request(subject: Subject, components: Iterable[Component], epoch: int) -> str:
    """Return what the program that knows CycloneDX is asked, as JSON."""
    entries = [
        {
            "type": _TYPES[item.kind],
            "name": item.name,
            "version": item.version,
            "purl": item.purl,
            "licence": item.licence,
            "scope": item.scope,
            "properties": {"debian:section": item.section} if item.section else {},
        }
        for item in components
    ]
    top = {name: getattr(subject, name) for name in Subject.__slots__}
    return json.dumps({"subject": top, "components": entries, "epoch": epoch}, sort_keys=True)


def write(requests: Mapping[Path, str]) -> None:
    """Write an SBOM for each request, by the file that it goes to, held to the schema of CycloneDX.

    One process makes them all: to import the library and to read the schema takes it far longer.

    Raises:
        subprocess.CalledProcessError: one does not fit the schema, or the library cannot be had here.
    """
    program = Path(__file__).with_name("cyclonedx_document.py")
    python = environment.ready() / "bin" / "python"
    done = subprocess.run(
        [python, "-I", program],
        check=True,
        input=json.dumps(list(requests.values())),
        stdout=subprocess.PIPE,
        text=True,
    )
    for target, text in zip(requests, json.loads(done.stdout), strict=True):
        target.write_text(text, "utf-8")

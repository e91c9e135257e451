"""What is in an image -> its SBOM, as CycloneDX 1.6 in JSON: sorted, without a time and a number of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pallas_gen.images.inventory import Component

_TYPES = {"python": "library", "debian": "library", "runtime": "platform"}


def text(name: str, image_id: str, components: Iterable[Component]) -> str:
    """Return the SBOM of the image `name`."""
    subject = {"type": "container", "bom-ref": image_id, "name": name, "version": image_id}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": [_component(component) for component in sorted(set(components))],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _component(component: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": _TYPES[component.kind],
        "name": component.name,
        "version": component.version,
        "purl": component.purl,
    }
    return entry | ({"licenses": [{"license": {"name": component.licence}}]} if component.licence else {})

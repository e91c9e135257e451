"""The SBOM of a bundled image."""

from __future__ import annotations

import json

from pallas_gen.bundle import sbom
from pallas_gen.images.inventory import Component


def test_each_component_once_in_order_and_with_its_licence_where_it_has_one() -> None:
    components = [Component("python", "b", "1", "MIT"), Component("debian", "a", "2", "", architecture="amd64")]
    text = sbom.text("i:1", "sha256:0", [*components, components[0]])
    document = json.loads(text)
    assert (document["specVersion"], document["metadata"]["component"]["name"]) == ("1.6", "i:1")
    first, second = document["components"]
    assert first == {"type": "library", "name": "a", "version": "2", "purl": "pkg:deb/debian/a@2?arch=amd64"}
    assert second["licenses"] == [{"license": {"name": "MIT"}}]
    assert sbom.text("i:1", "sha256:0", reversed(components)) == text

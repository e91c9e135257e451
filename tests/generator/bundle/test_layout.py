"""What a bundle says of itself."""

from __future__ import annotations

import json

from pallas_gen.bundle import layout
from pallas_gen.bundle.layout import Contents

CONTENTS = Contents("x", "1.0.0", {"b:1": "sha256:1", "a:1": "sha256:0"}, ["linux/amd64"] * 2, install="helm install")


def test_the_manifest_has_each_image_with_its_id() -> None:
    manifest = json.loads(layout.manifest(CONTENTS))
    assert [(image["name"], image["id"]) for image in manifest["images"]] == [("a:1", "sha256:0"), ("b:1", "sha256:1")]
    assert manifest["platforms"] == ["linux/amd64"]


def test_the_readme_has_three_commands_and_what_is_not_in_the_bundle_where_there_is_any() -> None:
    text = layout.readme(CONTENTS)
    commands = text.split("```sh\n")[1].partition("```")[0].splitlines()
    assert [command.split()[0] for command in commands] == ["sha256sum", "docker", "docker"]
    assert "Secrets" not in text
    assert "may reach the world" not in text
    more = Contents("x", "1", {}, [], secrets=["key"], outside=["scout: calls a model"])
    assert "- `key`" in layout.readme(more)
    assert "- scout: calls a model" in layout.readme(more)


def test_names_of_files_are_plain() -> None:
    assert layout.sbom("r:5/a/kit:1") == "sbom/r-5-a-kit-1.cdx.json"
    assert layout.slug("ä") == "fleet"


def test_each_image_has_an_sbom_of_its_own() -> None:
    """`/` and `-` are one in a file name: the second would be written over the first."""
    images = {"r/a/kit:1": "sha256:a", "r/a-kit:1": "sha256:b", "other:2": "sha256:c"}
    document = json.loads(layout.manifest(Contents("x", "1", images, ["linux/amd64"])))
    paths = {image["name"]: image["sbom"] for image in document["images"]}
    assert len(set(paths.values())) == 3
    assert paths["other:2"] == "sbom/other-2.cdx.json"
    assert paths == layout.sboms(reversed(images))

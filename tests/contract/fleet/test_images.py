"""Names of images: registry, path and tag by one pattern, from the file or from a variable."""

from __future__ import annotations

import pytest

from pallas_contract import __version__
from pallas_contract.fleet import images
from pallas_contract.fleet.model import Images


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("{name}", f"pallas-agent:{__version__}"),
        ("{name}:7", "pallas-agent:7"),
        ("localhost:5000/{name}", f"localhost:5000/pallas-agent:{__version__}"),
        ("ghcr.io/team/acme-{name}:1.4", "ghcr.io/team/acme-pallas-agent:1.4"),
    ],
)
def test_a_pattern_names_an_image(pattern: str, name: str) -> None:
    assert images.flaw(pattern) == ""
    assert images.image_name(pattern, "pallas-agent") == name


@pytest.mark.parametrize("pattern", ["", "pallas", "{name}/{name}", "Team/{name}", "a b/{name}", "{name}:", "{name}@x"])
def test_what_is_no_pattern_is_refused_with_an_example(pattern: str) -> None:
    assert "such as ghcr.io/team/{name}" in images.flaw(pattern)


def test_a_pattern_from_outside_is_stronger_than_the_file_but_no_name_in_it() -> None:
    written = Images(names="here/{name}", agent="mine:1")
    assert images.resolve(written).registry == f"here/pallas-registry:{__version__}"
    resolved = images.resolve(written, "there/{name}:2")
    assert (resolved.agent, resolved.registry, resolved.base) == (
        "mine:1",
        "there/pallas-registry:2",
        "there/pallas-agent:2",
    )

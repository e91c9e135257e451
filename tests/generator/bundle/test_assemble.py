"""The folder of a bundle, and the one file of it."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pallas_gen.bundle import assemble, layout
from pallas_gen.bundle.saved_images import NotSaved

from . import archives


def test_everything_is_in_it_with_its_checksum(bundle: Callable[..., Path]) -> None:
    folder = bundle()
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", layout.SUMS], cwd=folder, check=True)
    lines = (folder / layout.SUMS).read_text().splitlines()
    assert [line.partition("  ")[2] for line in lines] == [
        "MANIFEST.json",
        "README.md",
        "fleet/bin/run.sh",
        "fleet/compose.yaml",
        "images.tar",
        layout.CHART,
        "sbom/kit-1.cdx.json",
        "sbom/redis-8.cdx.json",
    ]
    (component,) = json.loads((folder / "sbom" / "kit-1.cdx.json").read_text())["components"]
    assert (component["name"], component["licenses"]) == ("thing", [{"license": {"name": "MIT"}}])


def test_the_same_inputs_give_the_same_bytes_and_modes_are_kept(bundle: Callable[..., Path], tmp_path: Path) -> None:
    for number in (1, 2):
        assemble.pack(bundle(str(number), time=number), tmp_path / f"{number}.tar", "x-1")
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()
    with tarfile.open(tmp_path / "1.tar") as archive:
        assert archive.getmember("x-1/fleet/bin/run.sh").mode == 0o755
        assert archive.getmember("x-1/fleet/compose.yaml").mode == 0o644


def test_an_image_that_docker_has_not_saved_is_missed(tmp_path: Path) -> None:
    with pytest.raises(NotSaved, match="has no image b:1"):
        assemble.save_images(tmp_path, ["a:1", "b:1"], lambda names, path: archives.save(path, "a:1") and None)

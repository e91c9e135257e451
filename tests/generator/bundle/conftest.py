"""A bundle of two images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from pallas_gen.bundle import assemble
from pallas_gen.bundle.assemble import File
from pallas_gen.bundle.layout import Contents

from . import archives

COMPOSE = "services: {a: {image: 'kit:1'}, b: {image: 'redis:8'}}\n"
CHART = {
    PurePosixPath("Chart.yaml"): "name: pallas\n",
    PurePosixPath("values.yaml"): "images: {agent: {repository: kit, tag: '1'}}\n",
}
IMAGES = ("kit:1", "redis:8")


@pytest.fixture
def bundle(tmp_path: Path) -> Callable[..., Path]:
    """Make a bundle in a folder of that name."""

    def make(name: str = "made", *, time: int = 1) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        saved = assemble.save_images(
            folder, IMAGES, lambda names, path: archives.save(path, *names, time=time) and None
        )
        contents = Contents("x", "1", {image: saved[image].id for image in IMAGES}, ["linux/amd64"])
        fleet = {PurePosixPath("compose.yaml"): File(COMPOSE.encode()), PurePosixPath("bin/run.sh"): File(b"#!", True)}
        assemble.write(folder, contents, fleet=fleet, chart=CHART)
        return folder

    return make

"""Archives of `docker save`: what is in them, and the same bytes for the same images."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest

from pallas_gen.bundle import saved_images
from pallas_gen.bundle.saved_images import NotSaved

from . import archives


def test_each_image_has_its_id_its_platform_and_its_layers(tmp_path: Path) -> None:
    ids = archives.save(tmp_path / "a.tar", "a:1", "b:1")
    with tarfile.open(tmp_path / "a.tar") as archive:
        images = saved_images.images(archive)
        assert {name: image.id for name, image in images.items()} == ids
        assert images["a:1"].platform == "linux/amd64"
        assert saved_images.damaged_layers(images["a:1"]) == []


def test_a_packed_layer_is_the_same_layer_and_another_one_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(archives.LAYER)
    for content, expected in ((packed, []), (archives.LAYER + b"x", ["blobs/layer"])):
        archives.save(tmp_path / "a.tar", "a:1", content=content, diff_id=archives.digest(archives.LAYER))
        with tarfile.open(tmp_path / "a.tar") as archive:
            assert saved_images.damaged_layers(saved_images.images(archive)["a:1"]) == expected


def test_two_archives_of_the_same_images_become_the_same_bytes(tmp_path: Path) -> None:
    texts = []
    for time in (1, 2):
        archives.save(tmp_path / "a.tar", "a:1", time=time)
        with tarfile.open(tmp_path / "a.tar") as source, tarfile.open(tmp_path / "b.tar", "w") as target:
            saved_images.rewrite(source, target)
        texts.append((tmp_path / "b.tar").read_bytes())
        with tarfile.open(tmp_path / "b.tar") as archive:
            assert list(saved_images.images(archive)) == ["a:1"]
    assert texts[0] == texts[1]


def test_an_archive_of_something_else_is_none(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w"):
        pass
    with tarfile.open(tmp_path / "a.tar") as archive, pytest.raises(NotSaved, match="is no archive"):
        saved_images.images(archive)

"""A bundle that has arrived: whole, damaged, or none."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pallas_contract.problems import Refused
from pallas_gen.bundle import assemble, layout, verify

from . import archives

NAMES = ("kit:1", "redis:8")


def lines(path: Path) -> list[str]:
    with verify.opened(path) as store:
        return [f"{problem.where.file}: {problem.message}" for problem in verify.problems(store)]


def resummed(folder: Path) -> None:
    """Write the checksums again, as somebody who means to deceive would."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != layout.SUMS]
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in paths]
    (folder / layout.SUMS).write_text("".join(sums))


def test_what_arrived_whole_has_no_problem_in_either_form(bundle: Callable[..., Path], tmp_path: Path) -> None:
    folder = bundle()
    assemble.pack(folder, tmp_path / "x.tar", "x-1")
    assert lines(folder) == lines(tmp_path / "x.tar") == []


def test_every_file_that_is_not_as_it_was_is_named(bundle: Callable[..., Path], tmp_path: Path) -> None:
    folder = bundle()
    (folder / "README.md").write_text("x")
    (folder / "fleet" / "bin" / "run.sh").unlink()
    (folder / "more").symlink_to("/nowhere")
    assert lines(folder) == [
        "README.md: is not as it was packed",
        "fleet/bin/run.sh: is missing",
        "more: was added",
    ]
    (folder / "more").unlink()
    assemble.pack(folder, tmp_path / "x.tar", "x-1")
    assert lines(tmp_path / "x.tar") == ["README.md: is not as it was packed", "fleet/bin/run.sh: is missing"]


def test_images_are_compared_with_the_manifest_and_with_what_names_them(bundle: Callable[..., Path]) -> None:
    folder = bundle()
    manifest = json.loads((folder / layout.MANIFEST).read_text())
    before = [image["id"] for image in manifest["images"]]
    archives.save(folder / layout.IMAGES, "kit:1", "redis:8", content=archives.layer({"other": b""}))
    resummed(folder)
    assert lines(folder) == [
        f"images.tar: {name} is not the image {image}" for name, image in zip(NAMES, before, strict=True)
    ]
    ids = archives.save(folder / layout.IMAGES, "kit:1", "other:1")
    manifest["images"][0]["id"] = ids["kit:1"]
    (folder / layout.MANIFEST).write_text(json.dumps(manifest))
    resummed(folder)
    assert lines(folder) == [f"images.tar: redis:8 is not the image {manifest['images'][1]['id']}"]
    del manifest["images"][1]
    (folder / layout.MANIFEST).write_text(json.dumps(manifest))
    resummed(folder)
    assert lines(folder) == ["compose.yaml: redis:8 is not in the bundle"]
    archives.save(
        folder / layout.IMAGES, "kit:1", content=archives.LAYER + b"x", diff_id=archives.digest(archives.LAYER)
    )
    resummed(folder)
    assert "images.tar: kit:1: blobs/layer is another layer" in lines(folder)


@pytest.mark.parametrize("name", [layout.MANIFEST, layout.IMAGES, layout.CHART, layout.COMPOSE])
@pytest.mark.parametrize("content", [b"[\xff", b"[" * 200_000], ids=["broken", "deep"])
def test_a_file_that_is_something_else_is_no_traceback(bundle: Callable[..., Path], name: str, content: bytes) -> None:
    folder = bundle()
    (folder / name).write_bytes(content)
    resummed(folder)
    assert len(lines(folder)) == 1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(archives.LAYER, mtime=0)[:40], id="ends too soon"),
        pytest.param(gzip.compress(archives.LAYER, mtime=0)[:10] + b"\xff" * 40, id="is spoilt"),
        pytest.param(b"\x1f\x8bno gzip", id="is none"),
    ],
)
def test_a_layer_that_cannot_be_unpacked_is_named(bundle: Callable[..., Path], content: bytes) -> None:
    folder = bundle()
    ids = archives.save(folder / layout.IMAGES, *NAMES, content=content)
    manifest = json.loads((folder / layout.MANIFEST).read_text())
    for image in manifest["images"]:
        image["id"] = ids[image["name"]]
    (folder / layout.MANIFEST).write_text(json.dumps(manifest))
    resummed(folder)
    assert lines(folder) == [f"images.tar: {name}: blobs/layer is another layer" for name in NAMES]


def test_images_of_something_else_than_docker_are_no_traceback(bundle: Callable[..., Path]) -> None:
    folder = bundle()
    (folder / layout.IMAGES).write_bytes(archives.LAYER)
    resummed(folder)
    assert lines(folder) == ["images.tar: is no archive of `docker save`"]


def test_a_chart_that_ends_too_soon_is_no_traceback(bundle: Callable[..., Path]) -> None:
    folder = bundle()
    chart = folder / json.loads((folder / layout.MANIFEST).read_text())["chart"]
    chart.write_bytes(chart.read_bytes()[:100])
    resummed(folder)
    assert lines(folder) == ["MANIFEST.json: cannot be understood: made by another version of the kit, or by hand"]


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for path in (tmp_path, tmp_path / "text", tmp_path / "nothing"):
        with pytest.raises(Refused):
            lines(path)

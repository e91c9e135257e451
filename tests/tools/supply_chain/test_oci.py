"""tools/supply_chain/image/oci.py and archive.py: builds that differ in times alone have one digest."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tools.supply_chain.image import archive, oci
from tools.supply_chain.image.oci import Image

from . import saved

EPOCH = 1_700_000_000
BASE = saved.layer({"bin/python": b"python"}, 1_600_000_000)


def read(folder: Path, content: bytes, seconds: int, packed: bool = False) -> Image:
    """Build an image at some time, and read it as it is released."""
    folder.mkdir()
    layers = [BASE, saved.layer({"opt/app.py": content, "opt/data": b"d"}, seconds)]
    if packed:  # as engines with containerd's image store write them
        layers = [gzip.compress(layer, mtime=seconds) for layer in layers]
    base = saved.image(folder / "saved.tar", layers, time=f"2026-01-01T00:00:{seconds % 60:02}Z")
    return oci.read(folder / "saved.tar", folder, name="team/pallas-agent:1.0", base=base, epoch=EPOCH)


def test_times_do_not_count_and_content_does(tmp_path: Path) -> None:
    first = read(tmp_path / "1", b"one", 1_750_000_001)
    second = read(tmp_path / "2", b"one", 1_750_000_059)
    other = read(tmp_path / "3", b"two", 1_750_000_001)
    assert first.manifest.digest == second.manifest.digest
    assert oci.difference(first, second) == []
    assert other.manifest.digest != first.manifest.digest
    assert oci.difference(first, other) == ["layer 1, opt/app.py"]


def test_the_base_stays_byte_for_byte_and_the_rest_has_one_time_and_its_owners(tmp_path: Path) -> None:
    image = read(tmp_path / "1", b"one", 1_750_000_001)
    assert image.layers[0].digest == saved.digest(BASE)
    with image.layers[1].open() as content, tarfile.open(fileobj=content) as file:
        assert {(member.mtime, member.uid) for member in file} == {(EPOCH, 10001)}
    assert image.own_size == image.layers[1].size
    assert image.config["created"] == "2023-11-14T22:13:20Z"
    assert [step["created"] for step in image.config["history"]] == [
        "2020-01-01T00:00:00Z",
        *["2023-11-14T22:13:20Z"] * 2,
    ]
    assert image.config["rootfs"]["diff_ids"] == [layer.digest for layer in image.layers]


def test_a_layer_of_the_base_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    first = read(tmp_path / "1", b"one", 1_750_000_001)
    layers = [saved.layer({"bin/python": b"damaged"}, 1), saved.layer({"opt/app.py": b"one", "opt/data": b"d"}, 1)]
    saved.image(tmp_path / "saved.tar", layers, time="2026-01-01T00:00:01Z")
    known = {saved.digest(layers[0]): first.layers[0]}
    again = oci.read(
        tmp_path / "saved.tar", tmp_path, name="a:1", base=[saved.digest(layers[0])], epoch=EPOCH, known=known
    )
    assert again.layers[0] is first.layers[0]
    assert again.layers[1] == replace(first.layers[1], content=again.layers[1].content)


def test_layers_may_be_compressed(tmp_path: Path) -> None:
    image = read(tmp_path / "1", b"one", 1_750_000_001, packed=True)
    assert image.manifest.digest != ""
    with image.layers[0].open() as content:
        assert content.read() == BASE


def test_another_base_is_refused(tmp_path: Path) -> None:
    saved.image(tmp_path / "saved.tar", [BASE], time="2026-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="pallas-agent:1 is not built from the base that is here"):
        oci.read(tmp_path / "saved.tar", tmp_path, name="pallas-agent:1", base=["sha256:0"], epoch=EPOCH)


def test_an_archive_holds_what_its_digests_say(tmp_path: Path) -> None:
    image = read(tmp_path / "1", b"one", 1_750_000_001)
    paths = [tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"]
    for path in paths:
        oci.write(image, path, EPOCH)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert oci.digest(paths[0]) == image.manifest.digest
    with tarfile.open(paths[0]) as file:
        contents = {member.name: file.extractfile(member).read() for member in file}  # type: ignore[union-attr]
    for name, content in contents.items():
        if name.startswith("blobs/"):
            assert saved.digest(content) == name.removeprefix("blobs/").replace("/", ":")
    (index,) = json.loads(contents["index.json"])["manifests"]
    manifest = json.loads(contents[f"blobs/{index['digest'].replace(':', '/')}"])
    (entry,) = json.loads(contents["manifest.json"])
    assert entry["RepoTags"] == [index["annotations"]["io.containerd.image.name"]] == ["team/pallas-agent:1.0"]
    assert index["annotations"]["org.opencontainers.image.ref.name"] == "1.0"
    assert [f"blobs/{layer['digest'].replace(':', '/')}" for layer in manifest["layers"]] == entry["Layers"]


def chart(path: Path, time: int) -> bytes:
    """Write an archive as `helm package` does, whose gzip header has an extra field; return it packed anew."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        member = tarfile.TarInfo("pallas/Chart.yaml")
        member.mtime, member.uid, member.uname = time, time % 1000, "somebody"
        file.addfile(member)
    packed = gzip.compress(stream.getvalue(), mtime=time)
    path.write_bytes(packed[:3] + b"\x04" + packed[4:10] + b"\x05\x00+helm" + packed[10:])
    archive.repack(path, EPOCH)
    return path.read_bytes()


def test_a_chart_packed_at_two_times_by_two_people_is_one(tmp_path: Path) -> None:
    assert chart(tmp_path / "a.tgz", 1_750_000_001) == chart(tmp_path / "b.tgz", 1_750_000_777)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tgz", "b.tgz"]

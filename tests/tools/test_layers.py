"""tools/layers: what a node has of an image whose layers Docker lends it, and what of Docker's is safe from it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tools import layers

pytestmark = pytest.mark.root

DOCKER = """#!/bin/sh
case $1 in
  image) cat "$STATE/inspected" ;;
  tag) echo "$2 $3" >> "$STATE/tags" ;;
esac
"""
CTR = """#!/bin/bash
case ${*:5:2} in
  "snapshots prepare")
    place=$STATE/snapshots/${8##*:} # the key
    mkdir -p "$place"
    echo "${@:8}" >> "$STATE/prepared"
    if [ $# = 8 ]; then
      echo '[{"Type": "bind", "Source": "'$place'", "Options": ["rw", "rbind"]}]'
    else
      echo '[{"Type": "overlay", "Source": "overlay", "Options": ["workdir=/w", "upperdir='$place'", "lowerdir=/l"]}]'
    fi ;;
  "snapshots commit") echo "${@:7}" >> "$STATE/committed" ;;
  "images import") cat > "$STATE/archive" ;;
esac
"""
CHECKS = """
set -e
mount --make-rprivate /
export PATH="$STATE/bin:$PATH"
"$PYTHON" tools/layers.py "$STATE/socket" "$STATE/lent" team/image=docker.io/team/image:latest
cat "$STATE"/snapshots/*/file
! rm "$STATE"/snapshots/*/file 2> /dev/null
{more}
"""
MADE_ANEW = """
mv "$STATE/docker/overlay2/upper" "$STATE/before"
mkdir -p "$STATE/docker/overlay2/upper/diff"
echo "made anew" > "$STATE/docker/overlay2/upper/diff/file"
"$PYTHON" tools/layers.py "$STATE/socket" "$STATE/lent" team/image=docker.io/team/image:latest
cat "$STATE"/snapshots/*/file
"""
LAYERS = ["sha256:" + "a" * 64, "sha256:" + "b" * 64]
CONFIG = b'{"rootfs": {}}'
ID = f"sha256:{hashlib.sha256(CONFIG).hexdigest()}"
CHAIN = f"sha256:{hashlib.sha256(' '.join(LAYERS).encode()).hexdigest()}"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A Docker with an image of two layers, and the commands `docker` and `ctr`, which keep what they are told."""
    (tmp_path / "bin").mkdir()
    for name, text in (("docker", DOCKER), ("ctr", CTR)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    root = tmp_path / "docker"
    for layer in ("lower", "upper"):
        folder = root / "overlay2" / layer / "diff"
        folder.mkdir(parents=True)
        (folder / "file").write_text(f"{layer}\n")
    store = root / "image" / "overlay2" / "imagedb" / "content" / "sha256"
    store.mkdir(parents=True)
    (store / ID.removeprefix("sha256:")).write_bytes(CONFIG)
    data = {"UpperDir": f"{root}/overlay2/upper/diff", "LowerDir": f"{root}/overlay2/lower/diff"}
    inspect(tmp_path, {"Name": "overlay2", "Data": data})
    return tmp_path


def inspect(state: Path, driver: object) -> None:
    """What Docker says of the image."""
    image = {"Id": ID, "RootFS": {"Layers": LAYERS}, "GraphDriver": driver}
    (state / "inspected").write_text(json.dumps([image]))


def run(root: Path, state: Path, more: str = "") -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--mount", "bash", "-c", CHECKS.replace("{more}", more)]
    env = os.environ | {"STATE": str(state), "PYTHON": sys.executable}
    return subprocess.run(command, cwd=root, env=env, check=False, capture_output=True, text=True, timeout=120)


def test_layers_are_snapshots_with_dockers_own_files_which_nobody_deletes(root: Path, state: Path) -> None:
    done = run(root, state)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["lower", "upper"]), done.stderr
    assert (state / "prepared").read_text().splitlines() == [f"lent-{LAYERS[0]}", f"lent-{CHAIN} {LAYERS[0]}"]
    assert (state / "committed").read_text().splitlines() == [f"{chain} lent-{chain}" for chain in (LAYERS[0], CHAIN)]
    held = f"pallas-cluster:{ID.removeprefix('sha256:')}\n"
    assert ((state / "tags").read_text(), (state / "lent" / "names").read_text()) == (f"{ID} {held}", held)
    assert (state / "docker" / "overlay2" / "lower" / "diff" / "file").exists()


def test_the_image_is_told_by_manifest_and_configuration(root: Path, state: Path) -> None:
    assert run(root, state).returncode == 0
    with tarfile.open(fileobj=io.BytesIO((state / "archive").read_bytes())) as tar:
        texts = {name: json.load(tar.extractfile(name) or io.BytesIO()) for name in tar.getnames()}
    (entry,) = texts["index.json"]["manifests"]
    assert entry["annotations"] == {"io.containerd.image.name": "docker.io/team/image:latest"}
    manifest = texts[f"blobs/sha256/{entry['digest'].removeprefix('sha256:')}"]
    assert manifest["config"]["digest"] == ID
    assert [layer["digest"] for layer in manifest["layers"]] == LAYERS
    assert texts[f"blobs/sha256/{ID.removeprefix('sha256:')}"] == json.loads(CONFIG)


def test_a_layer_is_lent_once_and_again_where_docker_has_made_it_anew(root: Path, state: Path) -> None:
    done = run(root, state, MADE_ANEW)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["lower", "lower", "made anew", "upper"])
    assert len((state / "prepared").read_text().splitlines()) == len(LAYERS)


@pytest.mark.parametrize("driver", [{"Name": "btrfs", "Data": None}, None])
def test_where_docker_keeps_layers_otherwise_it_says_no(root: Path, state: Path, driver: object) -> None:
    inspect(state, driver)
    assert run(root, state).returncode == 1
    assert not (state / "prepared").exists()


def test_chains_are_those_of_the_specification() -> None:
    assert layers.chains(LAYERS) == [LAYERS[0], CHAIN]
    assert layers.chains([]) == []

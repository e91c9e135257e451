"""Hand images of Docker to a containerd by their layers, where Docker has them: `layers.py SOCKET FOLDER IMAGE...`.

For tools/cluster, as root. An archive of an image is read, hashed and unpacked file by file, also where most of its
layers are there already: seconds of processor time each. Here each layer becomes a snapshot of containerd whose folder
is Docker's own, mounted read-only, so that nobody who tidies up the one or the other deletes what belongs to Docker.
The image is told by its manifest and configuration alone, and has the same digest in both. FOLDER is for this program.

Docker keeps what is lent under another name, `pallas-cluster:DIGEST`, until `tools/cluster down`: who removes an image
there takes no files away from pods. Exits with 1 where Docker keeps its layers in another way, and for all that fails.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

HELD = "pallas-cluster"
"""Docker's name of what is lent."""
DRIVER = "overlay2"
_OCI = "application/vnd.oci.image"


def run(*command: str | Path, stdin: bytes = b"") -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, input=stdin).stdout


def chains(layers: list[str]) -> list[str]:
    """The digest of each layer with all below it, as the OCI image specification reckons it; the lowest comes first."""
    found: list[str] = []
    for layer in layers:
        text = f"{found[-1]} {layer}" if found else ""
        found.append(f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if text else layer)
    return found


def folders(driver: dict[str, Any]) -> list[Path]:
    """Where Docker has the files of each layer; the lowest comes first."""
    data = driver["Data"]
    below = data.get("LowerDir", "").split(":")
    return [Path(path) for path in reversed([data["UpperDir"], *below]) if path]


class Node:
    """The images and snapshots of a containerd.

    `folder` has a file for each layer that was lent, with its place, and one with Docker's other names of the images.
    """

    def __init__(self, socket: str, folder: Path) -> None:
        self._ctr = ("ctr", "-a", socket, "-n", "k8s.io")
        self._lent = folder
        folder.mkdir(parents=True, exist_ok=True)

    def ctr(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return run(*self._ctr, *arguments, stdin=stdin)

    def hold(self, image: str) -> None:
        """Have Docker keep an image, by its digest, also when whoever has made it removes it."""
        name = f"{HELD}:{image.rpartition(':')[2]}"
        run("docker", "tag", image, name)
        with (self._lent / "names").open("a") as file:
            file.write(f"{name}\n")

    def take(self, image: dict[str, Any], name: str, config: bytes) -> None:
        """Make the layers of an image snapshots, and the image one of the node under a full name."""
        layers = image["RootFS"]["Layers"]
        below = ""
        for chain, folder in zip(chains(layers), folders(image["GraphDriver"]), strict=True):
            self._lend(chain, below, folder)
            below = chain
        self.ctr("images", "import", "--local", "--no-unpack", "-", stdin=archive(name, config, layers))

    def _lend(self, chain: str, below: str, folder: Path) -> None:
        mark = self._lent / chain
        if mark.exists():
            place = Path(mark.read_text())
            if not os.path.samestat(place.stat(), folder.stat()):  # Docker has made the layer anew
                run("umount", "--lazy", place)
                _mount(folder, place)
            return
        key = f"lent-{chain}"
        (mount,) = json.loads(self.ctr("snapshots", "prepare", "--mounts", key, *([below] if below else [])))
        place = _place(mount)
        _mount(folder, place)
        self.ctr("snapshots", "commit", chain, key)
        mark.write_text(str(place))


def _place(mount: dict[str, Any]) -> Path:
    """The folder with the files of a new snapshot: without one below it is bound as it is."""
    if mount["Type"] == "bind":
        return Path(mount["Source"])
    (upper,) = (option.removeprefix("upperdir=") for option in mount["Options"] if option.startswith("upperdir="))
    return Path(upper)


def _mount(folder: Path, place: Path) -> None:
    run("mount", "-o", "bind,ro", folder, place)


def archive(name: str, config: bytes, layers: list[str]) -> bytes:
    """An OCI archive of an image without its layers, whose sizes nobody asks for."""

    def told(kind: str, digest: str, size: int) -> dict[str, Any]:
        return {"mediaType": f"{_OCI}.{kind}", "digest": digest, "size": size}

    blobs: dict[str, bytes] = {}

    def blob(kind: str, data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return told(kind, f"sha256:{digest}", len(data))

    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": blob("config.v1+json", config),
        "layers": [told("layer.v1.tar", layer, 1) for layer in layers],
    }
    named = {"annotations": {"io.containerd.image.name": name}}
    index = {"schemaVersion": 2, "manifests": [blob("manifest.v1+json", json.dumps(manifest).encode()) | named]}
    blobs["oci-layout"] = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
    blobs["index.json"] = json.dumps(index).encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path, data in blobs.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def configuration(image: dict[str, Any]) -> bytes:
    """What the digest of an image is of, from Docker's own store."""
    upper = Path(image["GraphDriver"]["Data"]["UpperDir"])
    algorithm, _, digest = image["Id"].partition(":")
    return (upper.parents[2] / "image" / DRIVER / "imagedb" / "content" / algorithm / digest).read_bytes()


def main(socket: str, folder: str, *names: str) -> None:
    """Hand over each image under its full name: `IMAGE=FULL NAME`."""
    node = Node(socket, Path(folder))
    pairs = [name.partition("=")[::2] for name in names]
    images = json.loads(run("docker", "image", "inspect", *(image for image, _ in pairs)))
    if any((image.get("GraphDriver") or {}).get("Name") != DRIVER for image in images):
        sys.exit(1)
    for image, (_, name) in zip(images, pairs, strict=True):
        node.hold(image["Id"])
        node.take(image, name, configuration(image))


if __name__ == "__main__":
    main(*sys.argv[1:])

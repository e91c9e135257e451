"""What `docker save` wrote -> an OCI archive whose digest follows from the content of the image.

Two builds of the same inputs differ in nothing but times: of files, in the configuration, in the history. Docker's own
engine cannot rewrite them (BuildKit's `rewrite-timestamp` is for exporters that it does not have), so it is done here.
Layers of the base stay as they are, byte for byte: they are somebody else's, and shared.

Layers are stored uncompressed and the archive is compressed as a whole: so the digest depends on no version of zlib.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any

from . import archive

_LARGEST_DOCUMENT = 1 << 20
"""Bytes; the first layer is larger."""
_GZIP = b"\x1f\x8b"
_TYPES = "application/vnd.oci.image"


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of an archive, named by its digest."""

    digest: str
    """`sha256:` and 64 hexadecimal digits."""
    size: int
    content: bytes | Path

    @property
    def name(self) -> str:
        """Its path in an OCI layout."""
        return _path(self.digest)

    def open(self) -> IO[bytes]:
        """Open the content."""
        return BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open("rb")

    def descriptor(self, kind: str) -> dict[str, Any]:
        """Return how a manifest refers to it."""
        return {"mediaType": f"{_TYPES}.{kind}", "digest": self.digest, "size": self.size}


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it is released."""

    name: str
    """With its tag, as `docker load` names it."""
    config: dict[str, Any]
    layers: tuple[Blob, ...]
    """Uncompressed, from the base's first to the last."""
    base: int
    """How many of them are the base's."""

    @property
    def configuration(self) -> Blob:
        """The configuration as a file; its digest is the image's id."""
        return _json(self.config)

    @property
    def manifest(self) -> Blob:
        """The manifest as a file; its digest is the image's."""
        layers = [layer.descriptor("layer.v1.tar") for layer in self.layers]
        return _json(
            {
                "schemaVersion": 2,
                "mediaType": f"{_TYPES}.manifest.v1+json",
                "config": self.configuration.descriptor("config.v1+json"),
                "layers": layers,
            }
        )

    @property
    def own_size(self) -> int:
        """Bytes over the base."""
        return sum(layer.size for layer in self.layers[self.base :])


def read(
    saved: Path, scratch: Path, *, name: str, base: Sequence[str], epoch: int, known: Mapping[str, Blob] | None = None
) -> Image:
    """Return the image in an archive of `docker save`, with all times over the base set to `epoch`.

    Layers are written to the folder `scratch`, which outlives the image. `base` has the digests of the base's layers;
    those that are `known`, by digest, are taken as they are.

    Raises:
        ValueError: the archive has another number of images than one, or the image another base.
    """
    with tarfile.open(saved) as file:
        entries = json.loads(_content(file, "manifest.json"))
        if len(entries) != 1:
            raise ValueError(f"{saved.name} has {len(entries)} images; one is released at a time")
        config = json.loads(_content(file, entries[0]["Config"]))
        if config["rootfs"]["diff_ids"][: len(base)] != list(base):
            raise ValueError(f"{name} is not built from the base that is here: build it again")
        layers = tuple(
            (known or {}).get(digest) or _layer(file, path, scratch, None if digest else epoch)
            for path, digest in zip(entries[0]["Layers"], chain(base, repeat("")), strict=False)
        )
    return Image(name, _timed(config, layers, len(base), epoch), layers, len(base))


def write(image: Image, target: Path, epoch: int, level: int = archive.LEVEL) -> None:
    """Write an image as an OCI archive that `docker load` reads too, compressed by gzip."""
    manifest, configuration = image.manifest, image.configuration
    annotations = {"io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": _tag(image.name)}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPES}.index.v1+json",
        "manifests": [{**manifest.descriptor("manifest.v1+json"), "annotations": annotations}],
    }
    entry = {
        "Config": configuration.name,
        "RepoTags": [image.name],
        "Layers": [layer.name for layer in image.layers],
    }
    members = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
    members["manifest.json"] = _json([entry])
    members |= {blob.name: blob for blob in (manifest, configuration, *image.layers)}
    with archive.compressed(target, level) as stream, tarfile.open(fileobj=stream, mode="w|") as file:
        for path, blob in members.items():
            member = tarfile.TarInfo(path)
            member.size, member.mtime, member.mode = blob.size, epoch, 0o644
            with blob.open() as content:
                file.addfile(member, content)


def difference(first: Image, second: Image) -> list[str]:
    """Return what differs in two builds of one image, a line per file; empty where they have one digest."""
    if first.manifest.digest == second.manifest.digest:
        return []
    lines = []
    for number, (one, other) in enumerate(zip(first.layers, second.layers, strict=False)):
        if one.digest != other.digest:
            before, after = _files(one), _files(other)
            lines += [
                f"layer {number}, {path}" for path in sorted(before | after) if before.get(path) != after.get(path)
            ]
    return lines or ["the configuration, or the order of files in a layer"]


def digest(path: Path) -> str:
    """Return the digest of the image in an OCI archive, by its index."""
    return str(_index(_documents(path))["digest"])


def config(path: Path) -> dict[str, Any]:
    """Return the configuration of the image in an OCI archive."""
    documents = _documents(path)
    manifest = json.loads(documents[_path(_index(documents)["digest"])])
    return dict(json.loads(documents[_path(manifest["config"]["digest"])]))


def _documents(path: Path) -> dict[str, bytes]:
    """Return the files of an archive of ours that stand before its layers; these are not read."""
    documents: dict[str, bytes] = {}
    with tarfile.open(path) as file:
        for member in file:
            if member.size > _LARGEST_DOCUMENT:
                break
            documents[member.name] = _content(file, member)
    return documents


def _index(documents: Mapping[str, bytes]) -> dict[str, Any]:
    (manifest,) = json.loads(documents["index.json"])["manifests"]
    return dict(manifest)


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _content(file: tarfile.TarFile, name: str | tarfile.TarInfo) -> bytes:
    stream = file.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is no file in the archive of the image")
    return stream.read()


def _files(layer: Blob) -> dict[str, str]:
    """Return what each path of a layer is: its header, and the digest of its content."""
    with layer.open() as content, tarfile.open(fileobj=content) as file:
        return {
            member.name: f"{member.get_info()} {hashlib.sha256(stream.read()).hexdigest() if stream else ''}"
            for member in file
            for stream in [file.extractfile(member) if member.isreg() else None]
        }


def _layer(file: tarfile.TarFile, name: str, scratch: Path, epoch: int | None) -> Blob:
    """Write one layer uncompressed, with its times rewritten where `epoch` says to which."""
    stream = file.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is no file in the archive of the image")
    packed = stream.read(2) == _GZIP
    stream.seek(0)
    source: IO[bytes] = gzip.GzipFile(fileobj=stream) if packed else stream  # type: ignore[assignment]
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".layer", delete=False) as target:
        if epoch is None:
            while chunk := source.read(1 << 20):
                target.write(chunk)
        else:
            archive.rewrite(source, target, epoch)
    path = Path(target.name)
    with path.open("rb") as content:
        return Blob(f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}", path.stat().st_size, path)


def _timed(config: dict[str, Any], layers: Sequence[Blob], base: int, epoch: int) -> dict[str, Any]:
    """Return the configuration with the digests of `layers` and one time for all that is over the base."""
    time = _rfc3339(epoch)
    history: list[dict[str, Any]] = []
    filled = 0
    for step in config.get("history", []):
        ours = filled >= base
        history.append({**step, "created": time} if ours else step)
        filled += not step.get("empty_layer", False)
    rootfs = {**config["rootfs"], "diff_ids": [layer.digest for layer in layers]}
    return {**config, "created": time, "history": history, "rootfs": rootfs}


def _rfc3339(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _tag(name: str) -> str:
    return name.rpartition(":")[2]


def _json(value: object) -> Blob:
    content = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return Blob(f"sha256:{hashlib.sha256(content).hexdigest()}", len(content), content)

"""What `docker save` wrote -> the same images in an archive whose bytes follow from them, and what each of them is."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

_GZIP = b"\x1f\x8b"
UNPACKING = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a gzip raises that ends too soon or is none."""


class NotSaved(Exception):
    """An archive that is not one of `docker save`; the text is for the user."""


@dataclass(frozen=True, slots=True)
class SavedLayer:
    """A layer, by its path in the archive."""

    archive: tarfile.TarFile
    path: str

    def open(self) -> IO[bytes]:
        """Open its tar, unpacked."""
        stream = _member(self.archive, self.path)
        packed = stream.read(2) == _GZIP
        stream.seek(0)
        return gzip.GzipFile(fileobj=stream) if packed else stream  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class SavedImage:
    """One image of an archive."""

    name: str
    id: str
    """Digest of its configuration, which names its layers by their digests: the id that it has after `docker load`."""
    config: Mapping[str, Any]
    layers: Sequence[SavedLayer]

    @property
    def platform(self) -> str:
        """Return what it runs on, such as linux/amd64."""
        return f"{self.config.get('os') or 'linux'}/{self.config.get('architecture') or 'unknown'}"


def images(archive: tarfile.TarFile) -> dict[str, SavedImage]:
    """Return the images of an archive by name.

    Raises:
        NotSaved: it is no archive of `docker save`.
    """
    try:
        entries = json.loads(_member(archive, "manifest.json").read())
        return {image.name: image for entry in entries for image in _images(archive, entry)}
    except (ValueError, KeyError, TypeError, AttributeError, tarfile.TarError):
        raise NotSaved("is no archive of `docker save`") from None


def _images(archive: tarfile.TarFile, entry: Mapping[str, Any]) -> Iterator[SavedImage]:
    content = _member(archive, entry["Config"]).read()
    layers = [SavedLayer(archive, path) for path in entry["Layers"]]
    for name in entry["RepoTags"] or ():
        yield SavedImage(name, f"sha256:{hashlib.sha256(content).hexdigest()}", json.loads(content), layers)


def damaged_layers(image: SavedImage) -> list[str]:
    """Return the layers of an image whose content is not what its configuration names, by their paths."""
    wanted = image.config.get("rootfs", {}).get("diff_ids", [])
    if len(wanted) != len(image.layers):
        return [f"{len(image.layers)} layers, and {len(wanted)} in the configuration"]
    return [layer.path for layer, digest in zip(image.layers, wanted, strict=True) if _digest(layer) != digest]


def _digest(layer: SavedLayer) -> str:
    try:
        with layer.open() as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"  # type: ignore[arg-type]
    except UNPACKING:  # torn or spoilt: no digest is its own
        return ""


def rewrite(source: tarfile.TarFile, target: tarfile.TarFile) -> None:
    """Copy the members in the order of their names, without times and owners: what docker adds of its own."""
    for member in sorted(source.getmembers(), key=lambda entry: entry.name):
        plain = tarfile.TarInfo(member.name)
        plain.type = member.type
        plain.linkname = member.linkname
        plain.size = member.size
        plain.mode = 0o755 if member.isdir() else 0o644
        target.addfile(plain, source.extractfile(member) if member.isreg() else None)


def _member(archive: tarfile.TarFile, path: str) -> IO[bytes]:
    """Return a file of an archive.

    Raises:
        KeyError: it has none of that name.
    """
    stream = archive.extractfile(path)
    if stream is None:
        raise KeyError(path)
    return stream

"""Secrets planted where a person has them, and the search for them in all that is shown or leaves the machine."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

_DEPTH = 4
"""How often what was packed is unpacked: an image, its layer, an archive in that, and one more."""


@dataclass
class Canaries:
    """Words that occur nowhere else, each by the place it was planted in."""

    seed: str
    """Letters and digits of this run alone."""
    words: dict[str, str] = field(default_factory=dict)

    def plant(self, place: str) -> str:
        """Return the word of a place."""
        return self.words.setdefault(place, f"{self._start}{len(self.words):02d}s3cret")

    @property
    def _start(self) -> str:
        return f"canary{self.seed}x"

    def within(self, content: bytes) -> set[str]:
        """Return the places whose words are in `content`, as they are or in base64."""
        if not any(form in content for form in _forms(self._start)):  # the one search that most bytes need
            return set()
        return {place for place, word in self.words.items() if any(form in content for form in _forms(word))}

    def in_text(self, text: str) -> set[str]:
        """Return the places whose words are in `text`."""
        return self.within(text.encode())

    def in_image(self, image: str, without: Collection[str] = ()) -> dict[str, set[str]]:
        """Return where in an image which are: in layers that are not those of the images `without`, in its history."""
        known = {layer for other in without for layer in _layers(other)}
        saved = subprocess.run(["docker", "save", image], check=True, capture_output=True, timeout=600).stdout
        results = {}
        for name, content in pieces("", saved, frozenset(known)):
            if places := self.within(name.encode()) | self.within(content):
                results[name] = places
        for command in (["docker", "history", "--no-trunc", image], ["docker", "image", "inspect", image]):
            shown = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
            if places := self.within(shown):
                results[" ".join(command)] = places
        return results


def pieces(name: str, content: bytes, skipped: Collection[str] = (), depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield the files in an archive and in the archives among them, with the paths that lead there, or the one file.

    Members whose names are in `skipped` are left out.
    """
    members = _members(content) if depth < _DEPTH else None
    if members is None:
        yield name, content
        return
    for member, inner in members:
        if member.rpartition("/")[2] not in skipped:
            yield from pieces(f"{name}!{member}" if name else member, inner, skipped, depth + 1)


def _members(content: bytes) -> Iterator[tuple[str, bytes]] | None:
    """Return what is packed in `content`, None where nothing is."""
    if content[257:262] == b"ustar":
        return _tar(content)
    unpack = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress, b"\xfd7": lzma.decompress}.get(content[:2])
    try:
        if content[:4] == b"PK\x03\x04":
            return iter(_unzipped(content))
        return iter([("unpacked", unpack(content))]) if unpack else None
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, ValueError, RuntimeError):
        return None  # it only begins like one


def _tar(content: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            yield f"{member.name} {member.linkname}".strip(), b""
            if (file := archive.extractfile(member) if member.isfile() else None) is not None:
                yield member.name, file.read()


def _unzipped(content: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _layers(image: str) -> list[str]:
    """Return the digests of an image's layers, by which `docker save` names its files."""
    command = ["docker", "image", "inspect", "--format", "{{json .RootFS.Layers}}", image]
    listed = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    return [digest.removeprefix("sha256:") for digest in json.loads(listed)]


def _forms(word: str) -> Iterator[bytes]:
    """Yield the word, and of its base64 what does not depend on its neighbours, for each place it may begin at."""
    yield word.encode()
    for shift in range(3):
        yield base64.b64encode(b"." * shift + word.encode())[4 if shift else 0 : -4]

"""A bundle as it has arrived -> what in it is not as it was made. Nothing is unpacked, loaded or run."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol

import yaml

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.bundle import layout, references, saved_images

_SUM = re.compile(r"([0-9a-f]{64})  (.+)")
_LARGEST_TEXT = 64 * 1024 * 1024
_UNREADABLE = (
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError, yaml.YAMLError, tarfile.TarError),
    *saved_images.UNPACKING,
)


class Store(Protocol):
    """The files of a bundle, in a folder or in one file."""

    @property
    def names(self) -> set[str]:
        """Return their paths."""

    def open(self, name: str) -> IO[bytes]:
        """Open one of them."""


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}

    def open(self, name: str) -> IO[bytes]:
        return (self._folder / name).open("rb")


class _Packed:
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        files = [member for member in archive.getmembers() if not member.isdir()]
        self._members = {member.name.partition("/")[2]: member for member in files}
        self.names = set(self._members)

    def open(self, name: str) -> IO[bytes]:
        stream = self._archive.extractfile(self._members[name])
        if stream is None:
            raise OSError(name)
        return stream


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """Open a bundle: its folder, or the file that it was packed into.

    Raises:
        Refused: it is none.
    """
    hint = "name the folder or the .tar that `pallas-gen bundle` wrote"
    try:
        if path.is_dir():
            yield _checked(_Folder(path), path, hint)
        else:
            with tarfile.open(path, "r:") as archive:
                yield _checked(_Packed(archive), path, hint)
    except FileNotFoundError:
        raise Refused([Problem(Where(str(path)), "is not there", hint, code=Code.UNREADABLE_INPUT)]) from None
    except tarfile.TarError:
        raise Refused([Problem(Where(str(path)), "is no bundle", hint, code=Code.UNREADABLE_INPUT)]) from None


def _checked(store: Store, path: Path, hint: str) -> Store:
    if not {layout.SUMS, layout.MANIFEST} <= store.names:
        raise Refused([Problem(Where(str(path)), "is no bundle", hint, code=Code.UNREADABLE_INPUT)])
    return store


def problems(store: Store) -> Iterator[Problem]:
    """Yield every file that is not as its checksum says, and then every image that is not as the manifest says."""
    damaged = list(_of_sums(store))
    yield from damaged
    if damaged:  # what is in a damaged file means nothing
        return
    try:
        yield from _of_contents(store)
    except saved_images.NotSaved as error:
        yield _damaged(layout.IMAGES, str(error))
    except _UNREADABLE:
        yield _damaged(layout.MANIFEST, "cannot be understood: made by another version of the kit, or by hand")


def _of_sums(store: Store) -> Iterator[Problem]:
    with store.open(layout.SUMS) as file:
        lines = file.read(_LARGEST_TEXT).decode("utf-8", "replace").splitlines()
    matches = [match for line in lines if (match := _SUM.fullmatch(line))]
    if len(matches) != len(lines):
        yield _damaged(layout.SUMS, "has lines that are no checksums")
    sums = {match[2]: match[1] for match in matches}
    for name in sorted(sums.keys() | store.names - {layout.SUMS}):
        if name not in store.names:
            yield _damaged(name, "is missing")
        elif name not in sums:
            yield _damaged(name, "was added")
        elif _sum(store, name) != sums[name]:
            yield _damaged(name, "is not as it was packed")


def _sum(store: Store, name: str) -> str:
    try:
        with store.open(name) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError:  # a link, a pipe, a file that nobody may read
        return ""


def _of_contents(store: Store) -> Iterator[Problem]:
    manifest = json.loads(_text(store, layout.MANIFEST))
    wanted = {str(image["name"]): str(image["id"]) for image in manifest["images"]}
    with store.open(layout.IMAGES) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        saved = saved_images.images(archive)
        for name, digest in sorted(wanted.items()):
            if name not in saved or saved[name].id != digest:
                yield _damaged(layout.IMAGES, f"{name} is not the image {digest}")
            else:
                layers = saved_images.damaged_layers(saved[name])
                yield from (_damaged(layout.IMAGES, f"{name}: {path} is another layer") for path in layers)
    yield from references.problems(_text(store, manifest["compose"]), _chart(store, manifest), wanted)


def _chart(store: Store, manifest: Mapping[str, Any]) -> dict[PurePosixPath, str]:
    """Return the texts of the chart that tell of images and dependencies."""
    with store.open(manifest["chart"]) as stream, tarfile.open(fileobj=stream, mode="r:gz") as archive:
        files = {}
        for path in (references.CHART, references.VALUES):
            content = archive.extractfile(f"pallas/{path}") or io.BytesIO()
            files[path] = content.read(_LARGEST_TEXT).decode()
    return files


def _text(store: Store, name: str) -> str:
    with store.open(name) as stream:
        return stream.read(_LARGEST_TEXT).decode()


def _damaged(name: str, message: str) -> Problem:
    return Problem(Where(name), message, "copy the bundle again", code=Code.BUNDLE_DAMAGED)

"""Texts, project files and what `docker save` writes -> the folder of a bundle, or one file of it."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from pallas_gen.bundle import layout, saved_images, sbom
from pallas_gen.bundle.layout import Contents
from pallas_gen.bundle.saved_images import SavedImage
from pallas_gen.images import inventory

Save = Callable[[Sequence[str], Path], None]
"""Write the images of these names to a file, as `docker save` does."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the project."""

    content: bytes
    executable: bool = False


def save_images(folder: Path, names: Sequence[str], save: Save) -> dict[str, SavedImage]:
    """Write the images and their SBOMs into the folder of a bundle, and return the images by name.

    Raises:
        saved_images.NotSaved: the archive is none, or lacks an image.
    """
    raw = folder / ".images.tar"
    save(names, raw)
    (folder / "sbom").mkdir()
    with tarfile.open(raw) as archive:
        images = saved_images.images(archive)
        if missing := sorted(set(names) - images.keys()):
            raise saved_images.NotSaved(f"has no image {missing[0]}")
        for name, path in layout.sboms(names).items():
            text = sbom.text(name, images[name].id, inventory.components(images[name]))
            (folder / path).write_text(text, "utf-8")
        with tarfile.open(folder / layout.IMAGES, "w", format=tarfile.PAX_FORMAT) as target:
            saved_images.rewrite(archive, target)
    raw.unlink()
    return {name: images[name] for name in names}


def write(
    folder: Path, contents: Contents, *, fleet: Mapping[PurePosixPath, File], chart: Mapping[PurePosixPath, str]
) -> None:
    """Write the rest of a bundle, and the checksums of everything in it."""
    for path, file in fleet.items():
        target = folder / layout.FLEET / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)
    (folder / layout.CHART).write_bytes(_package(chart))
    (folder / layout.MANIFEST).write_text(layout.manifest(contents), "utf-8")
    (folder / layout.README).write_text(layout.readme(contents), "utf-8")
    lines = [f"{_sum(folder / path)}  {path}\n" for path in _files(folder)]
    (folder / layout.SUMS).write_text("".join(lines), "utf-8")


def pack(folder: Path, target: Path, name: str) -> None:
    """Write the folder of a bundle as one tar, in which it is called `name`."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in _files(folder):
            member = tarfile.TarInfo(f"{name}/{path}")
            status = (folder / path).stat()
            member.size = status.st_size
            member.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
            with (folder / path).open("rb") as content:
                archive.addfile(member, content)


def _package(chart: Mapping[PurePosixPath, str]) -> bytes:
    """Return a chart as `helm package` has it, without times."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", 9, packed, mtime=0) as stream,
        tarfile.open(fileobj=cast("IO[bytes]", stream), mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, text in sorted(chart.items()):
            content = text.encode()
            member = tarfile.TarInfo(f"pallas/{path}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _files(folder: Path) -> Iterator[str]:
    """Yield the files of a bundle by their paths in it, sorted."""
    yield from sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _sum(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

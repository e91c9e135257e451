"""A checkout -> all files of a release: written beside the folder they go to, which is renamed when all is well."""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from pallas_contract import __version__
from pallas_contract.fleet import images as image_names
from pallas_contract.fleet.model import Images
from pallas_gen.images import inventory, sources
from pallas_gen.images.inventory import Component

from . import checkout, distribution, environment
from .documents import changelog, provenance, sbom
from .environment import ROOT
from .image import archive, builds, oci
from .image.builds import IMAGES
from .licences import FILE as LICENCES
from .licences import Policy

__all__ = ("IMAGES", "NotReleasable", "make")

CHART = ROOT / "deploy" / "helm" / "pallas"
DEV_LOCK = ROOT / "requirements" / "dev.lock"
SUMS = "SHA256SUMS"


class NotReleasable(Exception):
    """A release that cannot be made of this checkout (`checkout`), or with what was built of it."""

    def __init__(self, problems: Sequence[str], *, checkout: bool) -> None:
        """Take one line per problem."""
        super().__init__("\n".join(problems))
        self.problems = problems
        self.checkout = checkout


@dataclass(frozen=True, slots=True)
class _Built:
    """One thing of the release that has an SBOM."""

    file: Path
    subject: sbom.Subject
    components: list[Component]


def make(out: Path, *, twice: Sequence[str], level: int = archive.LEVEL) -> Iterator[str]:
    """Make the release in the folder `out`, and yield a line per step.

    `twice` has the images that are built again and compared; `level` is that of gzip.

    Raises:
        NotReleasable: something is wrong; `out` is as it was.
        subprocess.CalledProcessError: a program failed; `out` is as it was.
    """
    with _refused(OSError):
        yield from _make(out, twice=twice, level=level)


def _make(out: Path, *, twice: Sequence[str], level: int) -> Iterator[str]:
    if problems := [
        *checkout.problems(ROOT, __version__),
        *checkout.foreign(ROOT, {**sources.roots(), "pallas_gen": Path(sources.__file__).parents[1]}),
        *_not_ours(out),
    ]:
        raise NotReleasable(problems, checkout=True)
    policy = _policy()
    epoch = checkout.epoch(ROOT)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as beside:
        folder = Path(beside) / "new"
        folder.mkdir()
        yield f"version {__version__} of commit {checkout.commit(ROOT)}"
        wheel = _wheel(folder, epoch)
        yield "wheel and sdist are built"
        _chart(folder, epoch)
        built = [wheel]
        base = builds.base()
        known: dict[str, oci.Blob] = {}  # layers of the base, which all are built from
        for name in IMAGES:
            image = _image(name, Path(beside), base.layers, epoch, known=known, again=name in twice)
            file = folder / f"{name}-{__version__}.oci.tar.gz"
            oci.write(image, file, epoch, level)
            built.append(_Built(file, _container(image), inventory.components(image)))
            times = "built twice with one digest, " if name in twice else ""
            yield f"{image.name} is {times}{image.manifest.digest}, {image.own_size / 1e6:.1f} MB over its base"
        listed = _licences(folder, built, policy)
        yield f"{listed} components have allowed licences"
        sbom.write(
            {
                item.file.with_name(f"{item.file.name}.cdx.json"): sbom.request(item.subject, item.components, epoch)
                for item in built
            }
        )
        notes = changelog.notes((ROOT / "CHANGELOG.md").read_text("utf-8"), __version__)
        (folder / "NOTES.md").write_text(notes, "utf-8")
        digests = {item.subject.name: f"sha256:{item.subject.sha256}" for item in built if item is not wheel}
        files = {path.name: provenance.sha256(path) for path in folder.iterdir()}
        files["provenance.json"] = _provenance(folder, base, files, digests, twice=twice)
        _sums(folder, files)
        _replace(folder, out, Path(beside) / "old")
    yield f"{out.name}/ has {len(list(out.iterdir()))} files; {SUMS} lists them"


def _wheel(folder: Path, epoch: int) -> _Built:
    """Build sdist and wheel."""
    command = [sys.executable, "-P", "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder)]
    environment.output(*command, cwd=ROOT, SOURCE_DATE_EPOCH=str(epoch))
    (wheel,) = folder.glob("*.whl")
    digest = provenance.sha256(wheel)
    name = distribution.DISTRIBUTION
    subject = sbom.Subject(name, __version__, "library", f"pkg:pypi/{name}@{__version__}", digest)
    with _refused(ValueError, PackageNotFoundError):
        components = distribution.components(DEV_LOCK)
    return _Built(wheel, subject, components)


def _chart(folder: Path, epoch: int) -> None:
    environment.output("helm", "package", str(CHART), "--destination", str(folder))
    archive.repack(folder / f"pallas-{__version__}.tgz", epoch)


def _image(
    name: str, beside: Path, base: Sequence[str], epoch: int, *, known: dict[str, oci.Blob], again: bool
) -> oci.Image:
    """Return an image as it is built, compared with a second build of it where `again` says so.

    Its layers are written below `beside`; those of the base that are not `known` by their digests are from then on.
    """
    names = image_names.resolve(Images(), builds.pattern())
    reference = image_names.image_name(names.names, name)

    def read(number: int) -> oci.Image:
        folder = beside / f"{name}-{number}"
        folder.mkdir()
        saved = builds.build(name, folder, cached=number == 1)
        with _refused(ValueError, tarfile.TarError):
            image = oci.read(saved, folder, name=reference, base=base, epoch=epoch, known=known)
        saved.unlink()
        known.update((layer.digest, layer) for layer in image.layers[: image.base])
        return image

    first = read(1)
    if again and (difference := oci.difference(first, read(2))):
        raise NotReleasable([f"{reference}, built twice, differs: {line}" for line in difference], checkout=False)
    return first


def _container(image: oci.Image) -> sbom.Subject:
    name = image.name.rpartition("/")[2].partition(":")[0]
    digest = image.manifest.digest
    properties = {"oci:image:id": image.configuration.digest, "oci:image:manifest": digest}
    purl = f"pkg:oci/{name}@{digest.replace(':', '%3A')}"
    return sbom.Subject(image.name, __version__, "container", purl, digest.partition(":")[2], properties)


def _policy() -> Policy:
    """Return the licences that are allowed, before anything is built that they decide on."""
    try:
        return Policy.read(ROOT / LICENCES)
    except ValueError as error:
        raise NotReleasable(str(error).splitlines(), checkout=True) from None


def _licences(folder: Path, built: Sequence[_Built], policy: Policy) -> int:
    """Write the list of licences; return how many components are on it."""
    problems = policy.unused(item for entry in built for item in entry.components)
    for entry in built:
        entry.components[:] = policy.named(entry.components)
    components = sorted({item for entry in built for item in entry.components})
    if problems := [*problems, *policy.problems(components)]:
        raise NotReleasable(problems, checkout=False)
    rows = [
        f"{item.kind}\t{item.name}\t{item.version}\t{item.licence or 'free by the Debian Free Software Guidelines'}"
        for item in components
    ]
    unique = sorted(set(rows))
    (folder / "LICENCES.tsv").write_text("\n".join(["kind\tname\tversion\tlicence", *unique, ""]), "utf-8")
    return len(unique)


def _provenance(
    folder: Path, base: builds.Base, files: Mapping[str, str], images: Mapping[str, str], *, twice: Sequence[str]
) -> str:
    """Write the provenance of `files`, sha256 by name, and `images`; return its own."""
    epoch = checkout.epoch(ROOT)
    locks = {path: provenance.sha256(ROOT / path) for path in checkout.locks(ROOT)}
    source = provenance.Source(
        __version__, checkout.commit(ROOT), epoch, locks, builds.BASE, base.layers, base_digests=base.digests
    )
    run = provenance.Run(checkout.builder(), builds.tools(), tuple(twice))
    file = folder / "provenance.json"
    file.write_text(provenance.statement(source, run, files, images), "utf-8")
    return provenance.sha256(file)


def _sums(folder: Path, files: Mapping[str, str]) -> None:
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(files.items())), "utf-8")


def _not_ours(out: Path) -> list[str]:
    """Return why the folder `out` is not one to replace: it has what no release put there; empty where it is."""
    if not out.exists():
        return []
    if not out.is_dir():
        return [f"{out} is no folder: name another one with --out"]
    sums = out / SUMS
    lines = sums.read_text("utf-8", "replace").splitlines() if sums.is_file() else []
    listed = {SUMS, *(line.partition("  ")[2] for line in lines)}
    if others := sorted(path.name for path in out.iterdir() if path.name not in listed or not path.is_file()):
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return [f"{out} has what its {SUMS} does not name ({others[0]}{more}): empty it, or name another with --out"]
    return []


@contextmanager
def _refused(*errors: type[Exception]) -> Iterator[None]:
    """Let no release be made where one of these is raised."""
    try:
        yield
    except errors as error:
        raise NotReleasable([f"{error}; nothing was released"], checkout=False) from error


def _replace(new: Path, out: Path, old: Path) -> None:
    """Put the folder `new` in the place of `out`: a reader sees all files of one release or of the other."""
    if problems := _not_ours(out):  # somebody has put a file there since the start
        raise NotReleasable(problems, checkout=True)
    if out.exists():
        out.rename(old)
    new.rename(out)
    shutil.rmtree(old, ignore_errors=True)

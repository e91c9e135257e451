"""What is in an image, read from its layers alone: Python packages, Debian packages, the interpreter."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from pathlib import PurePosixPath
from typing import IO, Any, Literal, Protocol

_WANTED = re.compile(
    r"(?:.*/)?[^/]+\.dist-info/METADATA|var/lib/dpkg/status(?:\.d/[^/]+)?|usr/share/doc/[^/]+/copyright|etc/os-release"
)
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""SPDX identifiers of the classifiers that packages use; `BSD License` is read as the stricter of its two."""
_GROUPS = {"OSI Approved", "DFSG approved"}
"""Classifiers that name no licence."""


class Layer(Protocol):
    """One layer of an image."""

    def open(self) -> IO[bytes]:
        """Open its tar, compressed or not."""


class Image(Protocol):
    """An image as far as it tells what is in it."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Return its configuration."""

    @property
    def layers(self) -> Sequence[Layer]:
        """Return its layers, the first one first."""


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """One thing that somebody else made, and that is delivered or installed with the kit."""

    kind: Literal["debian", "python", "runtime"]
    name: str
    version: str
    licence: str
    """An SPDX expression, or short names from Debian's copyright file, by ` AND `; empty where nothing says it."""
    section: str = ""
    """Debian's archive section, as `libs` or `non-free/libs`."""
    architecture: str = ""
    scope: Literal["required", "optional"] = "required"

    @property
    def purl(self) -> str:
        """Its package URL."""
        version = self.version.replace("+", "%2B").replace(":", "%3A")
        match self.kind:
            case "python":
                return f"pkg:pypi/{normalised(self.name)}@{version}"
            case "debian":
                return f"pkg:deb/debian/{self.name}@{version}?arch={self.architecture}"
            case "runtime":
                return f"pkg:generic/{self.name}@{version}"


def normalised(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def components(image: Image) -> list[Component]:
    """Return what is in an image, sorted; the kit's own code is not in it."""
    return sorted(set(_components(files(image), image.config.get("config", {}).get("Env") or [])))


def files(image: Image) -> dict[str, bytes]:
    """Return the files that tell of packages, by path, as a container sees them: later layers over earlier ones."""
    merged: dict[str, bytes] = {}
    for layer in image.layers:
        with layer.open() as content, tarfile.open(fileobj=content) as file:
            added, removed = _changes(file)
        merged = {path: text for path, text in merged.items() if not _covered(path, removed)} | added
    return merged


def _changes(file: tarfile.TarFile) -> tuple[dict[str, bytes], set[str]]:
    """Return the wanted files of a layer and the paths that it takes away, folders among them."""
    added: dict[str, bytes] = {}
    removed: set[str] = set()
    for member in file:
        path = PurePosixPath(member.name.removeprefix("./"))
        if path.name == ".wh..wh..opq":
            removed.add(str(path.parent))
        elif path.name.startswith(".wh."):
            removed.add(str(path.with_name(path.name[4:])))
        elif member.isreg() and _WANTED.fullmatch(str(path)):
            content = file.extractfile(member)
            added[str(path)] = content.read() if content else b""
    return added, removed


def _covered(path: str, removed: set[str]) -> bool:
    return path in removed or any(str(parent) in removed for parent in PurePosixPath(path).parents)


def _components(texts: Mapping[str, bytes], environment: Iterable[str]) -> Iterator[Component]:
    for path, content in texts.items():
        text = content.decode("utf-8", "replace")
        if path.endswith("/METADATA"):
            yield python_component(message_from_string(text))
        elif path.startswith("var/lib/dpkg/status"):
            yield from _debian(text, texts)
    for variable in environment:
        name, _, value = variable.partition("=")
        if name == "PYTHON_VERSION":  # the official image builds its own, which no package manager knows
            yield Component("runtime", "python", value, "PSF-2.0")


def python_component(metadata: Message | Any, scope: Literal["required", "optional"] = "required") -> Component:
    """Return a Python distribution from its METADATA."""
    return Component("python", str(metadata["Name"]), str(metadata["Version"]), _licence(metadata), scope=scope)


def _licence(metadata: Message | Any) -> str:
    """Return the licence: by PEP 639, else by the classifiers, else the field if it is one short line.

    It is empty where a classifier is none of those that are known, whatever the others and the field say.
    """
    if metadata["License-Expression"]:
        return str(metadata["License-Expression"])
    lines = [str(line) for line in metadata.get_all("Classifier", [])]
    classifiers = {line.rpartition(" :: ")[2] for line in lines if line.startswith("License ::")} - _GROUPS
    if not classifiers <= _CLASSIFIERS.keys():
        return ""
    if classifiers:
        return " AND ".join(sorted({_CLASSIFIERS[name] for name in classifiers}))
    field = str(metadata["License"] or "").strip()
    return field if "\n" not in field and len(field) < 60 else ""


def _debian(status: str, texts: Mapping[str, bytes]) -> Iterator[Component]:
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.MULTILINE))
        if not fields.get("Status", "install ok installed").endswith(" installed") or "Package" not in fields:
            continue
        copyright_file = texts.get(f"usr/share/doc/{fields['Package']}/copyright", b"").decode("utf-8", "replace")
        names = sorted(set(re.findall(r"^License: *([^\s,]+)$", copyright_file, re.MULTILINE)))
        yield Component(
            "debian",
            fields["Package"],
            fields["Version"],
            " AND ".join(names),
            section=fields.get("Section", ""),
            architecture=fields.get("Architecture", ""),
        )

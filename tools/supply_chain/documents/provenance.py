"""What made a release, of what: an in-toto statement with SLSA's provenance, as JSON.

It says nothing that another run would say otherwise: no time, no host. It is not signed here; the public workflow
attests the same files by the identity that it runs as.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "urn:pallas-kit:release:1"
"""The kind of build: `make release` of a checkout; docs/release.md describes its parameters."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a release was made of."""

    version: str
    commit: str
    """Of git, 40 or 64 hexadecimal digits."""
    epoch: int
    """Time of the commit in seconds since 1970, which all files have."""
    locks: Mapping[str, str]
    """sha256 by path."""
    base: str
    """Name of the image that both images are built from."""
    base_layers: tuple[str, ...]
    """Digests of its layers, uncompressed."""
    base_digests: tuple[str, ...] = ()
    """Names with digest by which a registry has it; none where it was built on this machine."""


@dataclass(frozen=True, slots=True)
class Run:
    """Who made it, with which programs."""

    builder: str
    """A URI: the workflow, or `urn:pallas-kit:builder:local`."""
    tools: Mapping[str, str]
    """Version by name."""
    rebuilt: tuple[str, ...]
    """Images that were built twice, with one digest."""


def sha256(path: Path) -> str:
    """Return the digest of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def statement(source: Source, run: Run, files: Mapping[str, str], images: Mapping[str, str]) -> str:
    """Return the statement over `files`, sha256 by name, and the manifests of `images`, digest by name with tag."""
    subjects = [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(files.items())]
    subjects += [{"name": name, "digest": _digest(digest)} for name, digest in sorted(images.items())]
    document = {
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {"version": source.version},
                "internalParameters": {"SOURCE_DATE_EPOCH": source.epoch, "builtTwice": sorted(run.rebuilt)},
                "resolvedDependencies": list(_dependencies(source)),
            },
            "runDetails": {"builder": {"id": run.builder, "version": dict(sorted(run.tools.items()))}},
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _dependencies(source: Source) -> Iterable[dict[str, Any]]:
    yield {"uri": "git:pallas-kit", "name": "commit", "digest": {"gitCommit": source.commit}}
    for path, digest in sorted(source.locks.items()):
        yield {"name": path, "digest": {"sha256": digest}}
    base: dict[str, Any] = {"name": source.base, "annotations": {"layers": list(source.base_layers)}}
    if source.base_digests:
        base |= {"uri": f"oci:{source.base_digests[0]}", "digest": _digest(source.base_digests[0].partition("@")[2])}
    else:
        # no registry has it, so it is named by what it is made of
        base["digest"] = {"sha256": hashlib.sha256("\n".join(source.base_layers).encode()).hexdigest()}
    yield base


def _digest(text: str) -> dict[str, str]:
    algorithm, _, value = text.partition(":")
    return {algorithm: value}

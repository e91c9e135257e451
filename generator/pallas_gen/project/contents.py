"""Digests of what containers get of the project folder: whether one runs what lies there now follows from them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pallas_gen.plan import Plan, Workload, digest
from pallas_gen.project import mounts

_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Contents:
    """Digest by path in the project folder: of the configuration, and of every other file that is mounted."""

    config: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def read(folder: Path, plan: Plan) -> Contents:
    """Read what the containers of a plan mount of the project in `folder`; of a file that nobody may read nothing."""
    return _read(folder, plan, [workload for workload in plan.workloads if workload.needs_code])


def read_all(folder: Path, plan: Plan) -> Contents:
    """Read the same, and what is baked into images besides."""
    return _read(folder, plan, plan.workloads)


def _read(folder: Path, plan: Plan, workloads: Iterable[Workload]) -> Contents:
    handed = {path for workload in workloads for path in workload.files}
    config = (*plan.config, *plan.lock)
    files = expanded(folder, handed, frozenset({*config, *plan.hidden}))
    return Contents(
        {path: _digest_of_file(folder / path) for path in sorted(config)},
        {path: _digest_of_file(folder / path) for path in sorted(set(files))},
    )


def expanded(folder: Path, entries: Collection[str], omitted: Collection[str]) -> Iterator[str]:
    """Yield the files that `entries` of a plan hand over, of a folder those that hold code; none that is `omitted`."""
    for entry in entries:
        for path in mounts.below(folder, entry) if entry.endswith("/") else (entry,):
            if path not in omitted:
                yield path


def files_of(workload: Workload, paths: Collection[str]) -> list[str]:
    """Return those of `paths` that a workload gets."""
    folders = tuple(entry for entry in workload.files if entry.endswith("/"))
    names = frozenset(workload.files)
    return [path for path in paths if path in names or path.startswith(folders)]


def fingerprints(plan: Plan, files: Mapping[str, str]) -> dict[str, str]:
    """Return host -> fingerprint of all that a program reads at its start and that its container does not say.

    `files` has by its path the text of each file, or a digest in its place.
    """
    return {
        workload.host: digest([workload.fingerprint, {path: files[path] for path in files_of(workload, files)}])
        for workload in plan.workloads
    }


def received(plan: Plan, contents: Contents) -> dict[str, str]:
    """Return host -> digest of all that its container mounts and reads at its start; none for what follows its files.

    A registry that agents register with does: one made anew would have to hear from all of them again.
    """
    prints = fingerprints(plan, contents.files)
    result = {}
    for workload in plan.workloads:
        if workload.needs_code and (workload.kind != "registry" or workload.stateless):
            result[workload.host] = digest([prints[workload.host], _config_of(workload, plan, contents)])
    return result


def _config_of(workload: Workload, plan: Plan, contents: Contents) -> dict[str, str]:
    if workload.foreign:
        return {}
    # the registry alone reads the lock, and all of the fleet file; of the others' parts the plan has fingerprints
    whole = workload.kind == "registry"
    of_registry = {plan.source, *plan.lock}
    return {path: entry for path, entry in contents.config.items() if whole or path not in of_registry}


def by_entry(plan: Plan, contents: Contents) -> dict[str, str]:
    """Return a digest for each entry of the plan that containers mount, a folder's over all that is in it; sorted."""
    files = contents.files
    result = dict(contents.config)
    for entry in {path for workload in plan.workloads if workload.needs_code for path in workload.files}:
        if entry.endswith("/"):
            result[entry] = digest({path: files[path] for path in files if path.startswith(entry)})
        else:
            result[entry] = files.get(entry, "")
    return dict(sorted(result.items()))


def changes(recorded: Mapping[str, str], current: Mapping[str, str]) -> dict[str, str]:
    """Return path -> how it differs from what was recorded, sorted by path."""
    differing = sorted(path for path in recorded.keys() | current.keys() if recorded.get(path) != current.get(path))
    return {
        path: "changed" if path in recorded and path in current else "was added" if path in current else "was removed"
        for path in differing
    }


def _digest_of_file(path: Path) -> str:
    """Return the digest of a file's bytes; of what cannot be read, or is no file, the empty text."""
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:_LENGTH]
    except OSError:
        return ""

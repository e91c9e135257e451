"""The folder of a tenant -> the memory. What is malformed is reported, and what the memory had of it stays."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from percolate.ingest import graph, readers
from percolate.memory import entities
from percolate.memory.embeddings import AT_ONCE, Embedder
from percolate.memory.pieces import pieces
from percolate.memory.store import Kind, Store
from percolate.problems import EmbeddingFailed, Full, Malformed
from percolate.settings import LIBRARY

_LONGEST_NAME = 1000
"""Bytes; it is a part of keys, which databases bound."""


@dataclass
class Report:
    """What came of it: documents that are new or changed, and a line for each problem."""

    read: int = 0
    problems: list[str] = field(default_factory=list)


def ingest(store: Store, embedder: Embedder, folder: Path, tenant: str, *, again: bool = False) -> Report:
    """Take everything in `folder` into the memory of `tenant`: NAME of a knowledge base/FILE, and entities.yaml.

    What is no longer in it is forgotten. With `again` vectors of another model or length are made anew, once the
    endpoint has given one.
    """
    report = Report()
    names = set()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        names.add(name)
        try:
            _check_name(name)
            if name == graph.FILE:
                entities.replace(store, tenant, graph.read(path))
            else:
                report.read += _document(store, path, name, tenant)
        except (Malformed, Full) as error:
            report.problems.append(f"{tenant}/{name.encode(errors='backslashreplace').decode()} {error}")
    store.forget(tenant, but={_source(name) for name in names})
    if graph.FILE not in names:
        entities.replace(store, tenant, [])
    try:
        _embed(store, embedder, tenant, again=again)
    except (EmbeddingFailed, Full) as error:
        waiting = store.waiting(tenant)
        report.problems.append(
            f"{tenant}: {error}: {waiting} pieces are found by words only, until they are ingested again"
        )
    return report


def forget_others(store: Store, tenants: Collection[str]) -> None:
    """Forget the documents and entities of all tenants but these, whose folders are gone; the library is nobody's."""
    for tenant in store.tenants():
        if tenant not in (*tenants, LIBRARY):
            store.forget(tenant, but=())
            entities.replace(store, tenant, [])


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, in order; what a link leads to elsewhere is not in it."""
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file() and path.resolve().is_relative_to(root):
            yield path


def _check_name(name: str) -> None:
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise Malformed("has a name that is not UTF-8: rename it") from None
    if length > _LONGEST_NAME:
        raise Malformed(f"has a name of {length} bytes with its folders, and may have {_LONGEST_NAME}: rename it")


def _source(name: str) -> str:
    return f"resource://{name}"


def _document(store: Store, path: Path, name: str, tenant: str) -> bool:
    """Return whether a document is new or another one than before."""
    source = _source(name)
    if (digest := _digest(path)) and digest == store.digest(tenant, source):
        return False
    document = readers.read(path, source, name.partition("/")[0])
    store.replace(tenant, document, pieces(document))
    return True


def _digest(path: Path) -> str:
    """Return the digest of a file that is not too large to be read, else nothing."""
    try:
        if path.stat().st_size > readers.LARGEST.get(path.suffix.lower(), 0):
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _embed(store: Store, embedder: Embedder, tenant: str, *, again: bool) -> None:
    """Give each piece of `tenant` its vector: a batch at a time, so that little is lost when it ends in between."""
    if again:
        (sample,) = embedder.embed(["again"])
        for kind in store.kinds(tenant):
            if kind != Kind(embedder.model, len(sample) // 4):
                store.drop_vectors(tenant, kind)
    waiting = store.without_vector(tenant)
    for start in range(0, len(waiting), AT_ONCE):
        batch = waiting[start : start + AT_ONCE]
        vectors = embedder.embed([content for _, content in batch])
        kind = Kind(embedder.model, len(vectors[0]) // 4)
        # so that a command in whose environment another endpoint stands, or none, mixes nothing
        if others := [str(other) for other in store.kinds(tenant) if other != kind]:
            raise EmbeddingFailed(
                f"the memory has vectors of {' and '.join(others)}, and these are of {kind} (`--again` makes all anew)"
            )
        store.put_vectors(
            tenant, embedder.model, [(key, vector) for (key, _), vector in zip(batch, vectors, strict=True)]
        )

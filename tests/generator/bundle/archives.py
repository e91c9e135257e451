"""What `docker save` writes for several images, made by hand."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

METADATA = b"Metadata-Version: 2.4\nName: thing\nVersion: 1.0\nLicense-Expression: MIT\n\n"


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _add(archive: tarfile.TarFile, files: Mapping[str, bytes], time: int) -> None:
    for name, content in files.items():
        member = tarfile.TarInfo(name)
        member.size = len(content)
        member.mtime = time
        archive.addfile(member, io.BytesIO(content))


def layer(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        _add(file, files, 0)
    return stream.getvalue()


LAYER = layer({"site/thing-1.0.dist-info/METADATA": METADATA})


def save(target: Path, *names: str, time: int = 1, content: bytes = LAYER, diff_id: str = "") -> dict[str, str]:
    """Write an archive in which all images have one layer; return their ids."""
    files = {"blobs/layer": content}
    entries = []
    ids = {}
    for number, name in enumerate(names):
        config = {
            "os": "linux",
            "architecture": "amd64",
            "author": name,
            "rootfs": {"diff_ids": [diff_id or digest(content)]},
        }
        files[f"blobs/{number}"] = json.dumps(config).encode()
        ids[name] = digest(files[f"blobs/{number}"])
        entries.append({"Config": f"blobs/{number}", "RepoTags": [name], "Layers": ["blobs/layer"]})
    with tarfile.open(target, "w") as file:
        _add(file, files | {"manifest.json": json.dumps(entries).encode()}, time)
    return ids

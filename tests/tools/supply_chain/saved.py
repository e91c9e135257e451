"""Images as `docker save` writes them, made by hand."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def layer(files: Mapping[str, bytes], time: int) -> bytes:
    """Return a layer with these files, all of that time."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid = len(content), time, 10001
            member.pax_headers = {"mtime": f"{time}.25"}
            file.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def image(target: Path, layers: Sequence[bytes], *, time: str, base: int = 1) -> list[str]:
    """Write the archive; return the digests of the base's layers."""
    diff_ids = [digest(content) for content in layers]
    history = [{"created": "2020-01-01T00:00:00Z"}] * base
    history += [{"created": time, "empty_layer": True}] + [{"created": time}] * (len(layers) - base)
    config = {
        "created": time,
        "architecture": "amd64",
        "config": {"Env": ["PYTHON_VERSION=3.13.7"]},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": history,
    }
    files = {f"blobs/{name.replace(':', '/')}": content for name, content in zip(diff_ids, layers, strict=True)}
    entry = {"Config": "config.json", "RepoTags": ["built:here"], "Layers": list(files)}
    files |= {"config.json": json.dumps(config).encode(), "manifest.json": json.dumps([entry]).encode()}
    with tarfile.open(target, "w") as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return diff_ids[:base]

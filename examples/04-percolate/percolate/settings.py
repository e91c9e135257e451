"""What the environment says: where the memory lies, and who embeds texts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DOCUMENTS = Path("documents")
"""Folder of the tenants' folders, beside agents.yaml."""
_MODEL = "text-embedding-3-small"
LIBRARY = "library"
"""The tenant whose documents are for agents, and belong to nobody."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one server."""

    database: str = field(repr=False)
    """Path of a file of SQLite, or address of a PostgreSQL (`postgresql://...`), which has a password in it."""
    embeddings_url: str = ""
    """Base URL of an OpenAI-compatible API. Empty: the stand-in, which needs nobody."""
    embeddings_model: str = _MODEL
    embeddings_key: str = field(default="", repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read them."""
        name = environ.get("PALLAS_SERVICE", "memory")
        return cls(
            database=environ.get("PERCOLATE_DATABASE") or str(_folder(name, environ) / f"{name}.db"),
            embeddings_url=environ.get("EMBEDDINGS_URL", "").rstrip("/"),
            embeddings_model=environ.get("EMBEDDINGS_MODEL") or _MODEL,
            embeddings_key=environ.get("EMBEDDINGS_API_KEY", ""),
        )


def _folder(name: str, environ: Mapping[str, str]) -> Path:
    """Return the folder that outlives a restart, where agents.yaml gives one to the service.

    Else the one it would be for processes, beside agents.yaml, or where that is read-only that of temporary files.
    """
    if state := environ.get("PALLAS_STATE"):
        return Path(state)
    folder = Path(".pallas") / "services" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir())
    return folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())

"""What the environment says: where the memory lies, and who embeds texts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DOCUMENTS = Path("documents")
"""Folder of the tenants' folders, beside agents.yaml."""
LIBRARY = "library"
"""The tenant whose documents are for agents, and belong to nobody."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one server."""

    database: Path
    embeddings_url: str = ""
    """Base URL of an OpenAI-compatible API. Empty: the stand-in, which needs nobody."""
    embeddings_model: str = "text-embedding-3-small"
    embeddings_key: str = field(default="", repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read them."""
        name = environ.get("PALLAS_SERVICE", "memory")
        return cls(
            database=Path(environ.get("PERCOLATE_DATABASE") or _folder() / f"{name}.db"),
            embeddings_url=environ.get("EMBEDDINGS_URL", "").rstrip("/"),
            embeddings_model=environ.get("EMBEDDINGS_MODEL", cls.embeddings_model),
            embeddings_key=environ.get("EMBEDDINGS_API_KEY", ""),
        )


def _folder() -> Path:
    """Return `.pallas` beside agents.yaml, or the folder of temporary files where that is read-only (a container)."""
    try:
        Path(".pallas").mkdir(exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir())
    return Path(".pallas") if os.access(".pallas", os.W_OK) else Path(tempfile.gettempdir())

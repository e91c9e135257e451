"""Addresses of the databases that replicas of the gateway share, from secret files; never shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses
from pallas_contract.problems import Refused
from pallas_service import secret_text

Key = Literal["store", "counters"]
_TARGETS: Mapping[Key, str] = {"store": names.STORE_URL, "counters": names.COUNTERS_URL}
_SCHEMES: Mapping[Key, frozenset[str]] = {
    "store": frozenset({"postgres", "postgresql"}),
    "counters": frozenset({"redis", "rediss", "valkey", "valkeys"}),
}
_EXAMPLES: Mapping[Key, str] = {
    "store": "postgresql://user:password@host:5432/name",
    "counters": "valkey://:password@host:6379/0",
}


def read(
    fleet: ResolvedFleet, key: Key, tree: Source, *, placement: addresses.Placement, project: Path, secrets: Path
) -> str:
    """Return the URL of one database of the gateway, empty where agents.yaml names none.

    Raises:
        Refused: the file cannot be read, or has no such address; never with its content.
    """
    store = getattr(fleet.gateway, key)
    if store is None:
        return ""
    text = secret_text.read(secret_text.locate(_TARGETS[key], store.url.file, project, secrets)).strip()
    parts = _split(text)
    if parts is None or parts.scheme not in _SCHEMES[key]:
        message = f"{store.url.file} has no address of such a database in it"
        problem = tree.problem(
            "gateway", key, "url", "file", message=message, hint=f"write {_EXAMPLES[key]}", code=Code.STORE_SERVICE
        )
        raise Refused([problem])
    if store.service is None:
        return text
    login, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{login}{at}{addresses.authority(fleet, store.service, placement)}").geturl()


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        return parts if parts.hostname and (parts.port is None or parts.port > 0) else None
    except ValueError:
        return None

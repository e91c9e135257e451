"""Prometheus HTTP service discovery: every replica's `/metrics`, with the agent's name as a label."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit

from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.prebuilt.documents import Document

PATH = "/prometheus/targets"


def document(fleet: str, agents: Iterable[str], endpoints: Callable[[str], Sequence[Endpoint]]) -> Document:
    """Return a target group per agent that has an address (Prometheus, http_sd_config)."""
    groups = [
        {
            "targets": [_authority(endpoint) for endpoint in replicas],
            "labels": {"fleet": fleet, "agent": agent} | _scheme(replicas[0]),
        }
        for agent in agents
        if (replicas := endpoints(agent))
    ]
    return Document(json.dumps(groups, ensure_ascii=False, separators=(",", ":")).encode())


def _scheme(endpoint: Endpoint) -> dict[str, str]:
    """Return the label for https: Prometheus asks with http unless told otherwise."""
    return {"__scheme__": "https"} if urlsplit(endpoint.url).scheme == "https" else {}


def _authority(endpoint: Endpoint) -> str:
    parts = urlsplit(endpoint.url)
    if endpoint.ip is None:
        return parts.netloc
    # Prometheus wants host:port, and an IPv6 address in brackets
    host = f"[{endpoint.ip}]" if ":" in endpoint.ip else endpoint.ip
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"

"""Prometheus HTTP service discovery: one target per replica."""

from __future__ import annotations

import json

from pallas_registry.catalogue import prometheus_sd
from pallas_registry.discovery.sighting import Endpoint


def test_every_replica_is_a_target_under_its_agents_name() -> None:
    where = {
        "harper": [Endpoint("http://harper:8080/mcp", "10.0.0.1"), Endpoint("http://harper:8080/mcp", "fd00::1")],
        "research": [Endpoint("http://127.0.0.1:8202/mcp")],
        "gone": [],
    }
    document = prometheus_sd.document("demo", where, where.__getitem__)
    assert json.loads(document.body) == [
        {"targets": ["10.0.0.1:8080", "[fd00::1]:8080"], "labels": {"fleet": "demo", "agent": "harper"}},
        {"targets": ["127.0.0.1:8202"], "labels": {"fleet": "demo", "agent": "research"}},
    ]
    assert dict(document.headers)[b"content-type"] == b"application/json", "Prometheus refuses any other"

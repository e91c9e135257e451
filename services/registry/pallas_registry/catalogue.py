"""The seed's catalogue as ready bytes: made once per change, served as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from pallas_contract import documents, launch
from pallas_registry.fleet_file import Loaded
from pallas_registry.prebuilt import Document
from pallas_registry.verdict import Verdict

PATH = "/.well-known/mcp/server.json"


class Catalogue:
    """`GET /.well-known/mcp/server.json` (seed 000 section 1), our own finding in each entry's `_meta`."""

    def __init__(self, *, now: Callable[[], datetime], placement: launch.Placement) -> None:
        self._now, self._placement = now, placement
        self._entries: dict[str, tuple[Any, bytes]] = {}
        self.document = Document(b'{"servers":[]}')

    def publish(self, loaded: Loaded, verdict: Callable[[str], Verdict]) -> None:
        """Bring the document up to date. An entry that says the same as before keeps its `updatedAt`."""
        entries = {agent: self._entry(loaded, agent, verdict(agent)) for agent in loaded.fleet.agents}
        if list(entries.items()) == list(self._entries.items()):
            return
        self._entries = entries
        body = b'{"servers":[' + b",".join(entry for _, entry in entries.values()) + b"]}"
        self.document = Document(body)

    def _entry(self, loaded: Loaded, agent: str, verdict: Verdict) -> tuple[Any, bytes]:
        server = documents.server(loaded.fleet, agent, loaded.capabilities, self._placement)
        said = (server, verdict)
        before = self._entries.get(agent)
        if before is not None and before[0] == said:
            return before
        entry = documents.entry(server, self._now(), verdict.state, verdict.reason)
        return said, json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()

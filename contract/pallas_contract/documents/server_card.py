"""Server cards (SEP-2127) and the catalogue that leads to them (`/.well-known/ai-catalog.json`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
CARD_TYPE = "application/mcp-server-card+json"
CATALOG_TYPE = "application/ai-catalog+json"
CATALOG_PATH = "/.well-known/ai-catalog.json"


def card(strict: Mapping[str, Any], protocol_versions: Sequence[str] = ()) -> dict[str, Any]:
    """Return the card of one server, from its strict registry form (`registry_api.server`): who it is and where.

    `protocol_versions` are claimed only by who knows them: the agent itself.
    """
    fields = {key: strict[key] for key in ("name", "title", "description", "version", "icons") if key in strict}
    remotes = [dict(remote) for remote in strict.get("remotes", ())]
    for remote in remotes if protocol_versions else ():
        remote["supportedProtocolVersions"] = list(protocol_versions)
    return {"$schema": SCHEMA, **fields} | ({"remotes": remotes} if remotes else {})


def identifier(registry_name: str) -> str:
    """Return the URN of a server: `com.example.project/harper` -> `urn:air:project.example.com:mcp:harper`."""
    namespace, _, name = registry_name.partition("/")
    # A URN of this kind is anchored on its publisher's domain, so the namespace's parts go back to DNS order.
    return f"urn:air:{'.'.join(reversed(namespace.split('.')))}:mcp:{name}"


def catalog(cards: Iterable[tuple[Mapping[str, Any], str]]) -> dict[str, Any]:
    """Return the AI catalogue of servers, each a pair (card, URL of the card)."""
    entries = [
        {"identifier": identifier(card["name"]), "displayName": card["title"], "type": CARD_TYPE, "url": url}
        for card, url in cards
    ]
    return {"specVersion": "1.0", "entries": entries}

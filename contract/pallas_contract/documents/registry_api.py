"""Registry entries as the official schemas want them: server.json 2025-12-11 and the registry API v0.1.

Stricter than the seed's documents: a description of 1 to 100 characters, `sizes` a list, icons by https only, no
`capabilities` beside the schema's own fields, and no URL that only the fleet's network resolves. What is left out there
stands under a key of our own in `_meta`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from pallas_contract.documents import server_json
from pallas_contract.documents.health import State, timestamp
from pallas_contract.documents.reason import Reason

AGENT_META = "io.pallas-kit/agent"
"""Our key in `_meta`: state and reason, the model's capabilities, the URL inside the fleet's network."""

# Limits of the official schema: `maxLength` of title and description, of an icon's `src`, and of a version (255).
_MAX_TEXT = 100
_MAX_ICON = 255
_SIZE = re.compile(r"(\d+x\d+|any)")

Lifecycle = Literal["active", "deleted"]


def server(seed: Mapping[str, Any], public: str | None) -> dict[str, Any]:
    """Return the strict form of the seed's `server` object; `public` is the URL for outsiders, if there is one."""
    title = shorten(seed["title"])
    document: dict[str, Any] = {
        "$schema": server_json.SCHEMA,
        "name": seed["name"],
        "title": title,
        "description": shorten(seed.get("description") or title),
        "version": seed["version"][:255],
    }
    icons = [fit for icon in seed.get("icons", ()) if (fit := _icon(icon))]
    if icons:
        document["icons"] = icons
    if public:
        document["remotes"] = [{"type": "streamable-http", "url": public}]
    return document


def entry(
    strict: Mapping[str, Any],
    seed: Mapping[str, Any],
    *,
    published: datetime,
    updated: datetime,
    changed: datetime,
    health: tuple[State, Reason],
    lifecycle: Lifecycle = "active",
    registration: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a `ServerResponse`. `changed` is when the lifecycle last did; the agent's state moves `updated` only."""
    official = {
        "status": lifecycle,
        "statusChangedAt": timestamp(changed),
        "publishedAt": timestamp(published),
        "updatedAt": timestamp(updated),
        "isLatest": True,
    }
    meta: dict[str, Any] = dict(server_json.state_fields(*health))
    if "capabilities" in seed:
        meta["capabilities"] = seed["capabilities"]
    # A URL that only the fleet resolves is none for readers of the official API, but clients of ours need it.
    inside = [remote["url"] for remote in seed["remotes"] if remote not in strict.get("remotes", ())]
    if inside:
        meta["internalUrl"] = inside[0]
    more = {server_json.REGISTRATION_META: registration} if registration else {}
    return {"server": dict(strict), "_meta": {server_json.OFFICIAL_META: official, AGENT_META: meta, **more}}


def shorten(text: str, limit: int = _MAX_TEXT) -> str:
    """Return `text` in one line of at most `limit` characters, cut at a word where there is one."""
    line = " ".join(text.split()) or "-"
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    return (head.rpartition(" ")[0] or head).rstrip(" ,;:.") + "…"


def _icon(icon: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return None for what the schema refuses: a relative or plain-http `src`, or one that is too long."""
    # The schema asks for `format: uri`, which most validators do not check.
    src = icon["src"]
    try:
        usable = urlsplit(src).scheme == "https" and bool(urlsplit(src).hostname)
    except ValueError:
        usable = False
    if not usable or len(src) > _MAX_ICON or re.search(r"[\s<>\"{}|\\^`]", src):
        return None
    sizes = [size for size in (icon.get("sizes") or "").split() if _SIZE.fullmatch(size)]
    return {"src": src} | ({"sizes": sizes} if sizes else {})

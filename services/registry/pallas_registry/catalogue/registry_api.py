"""The official registry API v0.1, read side: `/v0.1/servers`, its pages and filters, and the versions of a server."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl

from pallas_registry.prebuilt.documents import Document, refusal

PREFIX = "/v0.1/"
PATH = "/v0.1/servers"
LIMIT = 30
MOST = 100
"""Entries on a page: by default, and at most."""

_VERSIONS = re.compile(r"/v0\.1/servers/(?P<name>[^/]+/[^/]+)/versions(?:/(?P<version>[^/]+))?")
_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_PARAMETERS = ("cursor", "limit", "search", "updated_since", "version", "include_deleted")

NO_PATH = refusal(404, "Not found")
NO_SERVER = refusal(404, "Server not found")
NO_VERSION = refusal(404, "Server version not found")
NOT_SUPPORTED = refusal(501, "Publishing is not supported by this registry: agents.yaml says what is in it")


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server with what it is found by; `text` is what `search` looks in, case folded; `body` its JSON."""

    name: str
    version: str
    updated: datetime
    text: str
    body: bytes
    deleted: bool = False


class BadQuery(Exception):
    """A query parameter that cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of the list, understood."""

    after: str = ""
    limit: int = LIMIT
    search: str = ""
    updated_since: datetime | None = None
    version: str = ""
    include_deleted: bool = False

    def takes(self, entry: ServerEntry) -> bool:
        return (
            (self.include_deleted or not entry.deleted)
            and self.search in entry.text
            and self.version in ("", "latest", entry.version)
            and (self.updated_since is None or entry.updated >= self.updated_since)
        )


def understand(raw: bytes) -> Query:
    """Return the query string as a `Query`; parameters that the API does not know are ignored.

    Raises:
        BadQuery: one that it knows has a value it cannot have, or is values twice.
    """
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise BadQuery("too many query parameters") from None
    values = {name: value for name, value in pairs if name in _PARAMETERS}
    if len(values) != sum(name in _PARAMETERS for name, _ in pairs):
        raise BadQuery("a query parameter is values twice")
    since = _moment(values["updated_since"]) if "updated_since" in values else None
    return Query(
        after=_cursor(values.get("cursor", "")),
        limit=_limit(values.get("limit", str(LIMIT))),
        search=values.get("search", "").casefold(),
        updated_since=since,
        version=values.get("version", ""),
        # who asks for changes must hear of removals too
        include_deleted=_flag(values.get("include_deleted", "false")) or since is not None,
    )


class ServerList:
    """All servers in the order of their names; an answer joins bytes that were made when the entry changed."""

    def __init__(self, servers: Iterable[ServerEntry] = ()) -> None:
        self._servers = sorted(servers, key=lambda entry: entry.name)
        self._names = [entry.name for entry in self._servers]

    def find(self, method: str, path: str, query: bytes) -> Document | None:
        """Return the answer to a request under `/v0.1/`; None for every other path."""
        if not path.startswith(PREFIX):
            return None
        # the API publishes with these, and has 501 for registries that do not take it
        if method in ("PUT", "PATCH", "DELETE") or (method, path) == ("POST", "/v0.1/publish"):
            return NOT_SUPPORTED
        try:
            parameters = understand(query)
        except BadQuery as bad:
            return refusal(400, str(bad))
        if path == PATH:
            return self._page(parameters)
        match = _VERSIONS.fullmatch(path)
        return self._versions(match["name"], match["version"], parameters.include_deleted) if match else NO_PATH

    def _page(self, query: Query) -> Document:
        # names are sorted, so a cursor is the last name and needs no state: it survives a change of the list
        start = bisect_right(self._names, query.after) if query.after else 0
        page: list[ServerEntry] = []
        more = False
        for entry in self._servers[start:]:
            if not query.takes(entry):
                continue
            # one more than fits has to be met before it is known that there is a next page
            if len(page) == query.limit:
                more = True
                break
            page.append(entry)
        return _list(page, page[-1].name if more else "")

    def _versions(self, name: str, version: str | None, include_deleted: bool) -> Document:
        index = bisect_right(self._names, name) - 1
        server = self._servers[index] if index >= 0 and self._names[index] == name else None
        if server is None or (server.deleted and not include_deleted):
            return NO_SERVER
        if version is None:
            return _list([server])
        return Document(server.body) if version in ("latest", server.version) else NO_VERSION


def _list(page: list[ServerEntry], cursor: str = "") -> Document:
    next_cursor = f',"nextCursor":"{cursor}"' if cursor else ""  # a name: nothing in it needs escaping
    metadata = f'"metadata":{{"count":{len(page)}{next_cursor}}}'
    return Document(b'{"servers":[' + b",".join(entry.body for entry in page) + b"]," + metadata.encode() + b"}")


def _cursor(text: str) -> str:
    if text and not _NAME.fullmatch(text):
        raise BadQuery("cursor is not one that this registry gave out")
    return text


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MOST):
        raise BadQuery(f"limit must be a whole number from 1 to {MOST}")
    return int(text)


def _moment(text: str) -> datetime:
    try:
        if not _RFC3339.fullmatch(text.upper()):
            raise ValueError
        return datetime.fromisoformat(text.upper())
    except ValueError:
        raise BadQuery("updated_since must be a time as in RFC 3339, such as 2026-03-12T10:00:00Z") from None


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise BadQuery("include_deleted must be true or false")
    return text == "true"

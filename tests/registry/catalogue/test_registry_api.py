"""The registry API v0.1: pages, filters, versions, and refusals in its own shape."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_registry.catalogue.registry_api import ServerEntry, ServerList

START = datetime(2026, 3, 12, 10, tzinfo=UTC)


def listed(name: str, minutes: int = 0, version: str = "1.0.0", deleted: bool = False, text: str = "") -> ServerEntry:
    full = f"com.example/{name}"
    body = json.dumps({"server": {"name": full, "version": version}, "_meta": {}}).encode()
    return ServerEntry(full, version, START + timedelta(minutes=minutes), f"{full}\n{text}".casefold(), body, deleted)


@pytest.fixture
def listing() -> ServerList:
    return ServerList(
        [
            listed("scout", 3, "2.0.0+x", text="Finds Müller"),
            listed("harper", 1),
            listed("research", 2, text="Knowledge GRAPH"),
            listed("gone", 4, deleted=True),
        ]
    )


def ask(listing: ServerList, path: str, **query: str) -> tuple[int, dict]:
    raw = "&".join(f"{key}={quote(value)}" for key, value in query.items()).encode()
    document = listing.find("GET", path, raw)
    return document.status, json.loads(document.body)


def names(listing: ServerList, **query: str) -> list[str]:
    status, body = ask(listing, "/v0.1/servers", **query)
    assert (status, body["metadata"]["count"]) == (200, len(body["servers"]))
    return [each["server"]["name"].split("/")[1] for each in body["servers"]]


def test_all_in_the_order_of_their_names(listing: ServerList) -> None:
    assert names(listing) == ["harper", "research", "scout"]
    assert ask(listing, "/v0.1/servers")[1]["metadata"] == {"count": 3}


def test_pages_one_after_the_other_are_the_whole(listing: ServerList) -> None:
    cursor, found = "", []
    for _ in range(3):
        _, body = ask(listing, "/v0.1/servers", limit="1", cursor=cursor)
        found += [each["server"]["name"] for each in body["servers"]]
        cursor = body["metadata"].get("nextCursor", "")
    assert (found, cursor) == (["com.example/harper", "com.example/research", "com.example/scout"], "")


def test_a_cursor_outlives_the_server_it_names(listing: ServerList) -> None:
    assert names(listing, cursor="com.example/iris") == ["research", "scout"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"search": "graph"}, ["research"]),
        ({"search": "MÜLLER"}, ["scout"]),
        ({"search": "com.example/h"}, ["harper"]),
        ({"search": "nobody"}, []),
        ({"search": ""}, ["harper", "research", "scout"]),
        ({"version": "latest"}, ["harper", "research", "scout"]),
        ({"version": "2.0.0+x"}, ["scout"]),
        ({"version": "9"}, []),
        ({"updated_since": "2026-03-12T10:02:00Z"}, ["gone", "research", "scout"]),
        ({"updated_since": "2026-03-12T12:03:00.000+02:00"}, ["gone", "scout"]),
        ({"updated_since": "2026-03-12t10:05:00z"}, []),
        ({"include_deleted": "true"}, ["gone", "harper", "research", "scout"]),
        ({"limit": "100", "unknown": "ignored"}, ["harper", "research", "scout"]),
    ],
)
def test_filters(listing: ServerList, query: dict[str, str], expected: list[str]) -> None:
    assert names(listing, **query) == expected


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": "1.0"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"limit": "9" * 5000}, "limit"),
        ({"cursor": "../../etc/passwd"}, "cursor"),
        ({"cursor": "\x00"}, "cursor"),
        ({"updated_since": "yesterday"}, "updated_since"),
        ({"updated_since": ""}, "updated_since"),
        ({"updated_since": "2026-03-12"}, "updated_since"),
        ({"updated_since": "2026-02-30T10:00:00Z"}, "updated_since"),
        ({"updated_since": "2026-03-12T10:00:00"}, "updated_since"),
        ({"updated_since": "2026-03-12T10:00:00+99:00"}, "updated_since"),
        ({"include_deleted": "maybe"}, "include_deleted"),
    ],
)
def test_a_bad_parameter_is_named(listing: ServerList, query: dict[str, str], word: str) -> None:
    status, body = ask(listing, "/v0.1/servers", **query)
    assert (status, list(body)) == (400, ["error"])
    assert word in body["error"]


@pytest.mark.parametrize("raw", [b"limit=1&limit=2", b"&".join([b"x=1"] * 60)])
def test_more_than_was_asked_for(listing: ServerList, raw: bytes) -> None:
    assert listing.find("GET", "/v0.1/servers", raw).status == 400


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/v0.1/servers/com.example/scout/versions", 200, None),
        ("/v0.1/servers/com.example/scout/versions/latest", 200, None),
        ("/v0.1/servers/com.example/scout/versions/2.0.0+x", 200, None),
        ("/v0.1/servers/com.example/scout/versions/1.0.0", 404, "Server version not found"),
        ("/v0.1/servers/com.example/nobody/versions", 404, "Server not found"),
        ("/v0.1/servers/com.example/gone/versions", 404, "Server not found"),
        ("/v0.1/servers/com.example/scout", 404, "Not found"),
        ("/v0.1/servers/", 404, "Not found"),
        ("/v0.1/", 404, "Not found"),
    ],
)
def test_versions(listing: ServerList, path: str, status: int, said: str | None) -> None:
    found, body = ask(listing, path)
    assert (found, body.get("error")) == (status, said)


def test_a_removed_server_is_told_to_who_asks_for_it(listing: ServerList) -> None:
    assert ask(listing, "/v0.1/servers/com.example/gone/versions/latest", include_deleted="true")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "/v0.1/servers/a/versions/1", 501), ("POST", "/v0.1/publish", 501), ("PATCH", "/v0.1/x", 501)],
)
def test_publishing_is_not_for_here(listing: ServerList, method: str, path: str, status: int) -> None:
    document = listing.find(method, path, b"")
    assert (document.status, list(json.loads(document.body))) == (status, ["error"])


def test_other_paths_are_not_ours(listing: ServerList) -> None:
    assert listing.find("GET", "/v0/servers", b"") is None


@given(
    raw=st.binary(max_size=200) | st.from_regex(rb"(cursor|limit|updated_since|version|search)=.{0,40}", fullmatch=True)
)
def test_any_query_string_is_answered(raw: bytes) -> None:
    document = ServerList([listed("harper")]).find("GET", "/v0.1/servers", raw)
    assert document.status in (200, 400)
    assert json.loads(document.body).keys() <= {"servers", "metadata", "error"}

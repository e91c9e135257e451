"""The strict faces hold what the official schemas ask, whatever agents.yaml says."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker

from pallas_contract.documents import registry_api, server_json
from pallas_contract.documents.reason import Reason
from pallas_contract.fleet.model import Agent, Fleet, Icon
from pallas_contract.fleet.resolved import resolve
from pallas_registry import fleet_file
from pallas_registry.catalogue.catalogue import PATH, Catalogue
from pallas_registry.fleet_file import FleetReading
from pallas_registry.state.status import Condition

OFFICIAL = Path(__file__).parent / "official"
STRICTER = json.loads((OFFICIAL / "registry.schema.json").read_text())
API = json.loads((OFFICIAL / "openapi.json").read_text())
SERVER = json.loads((OFFICIAL / "server.schema.json").read_text())
CATALOG = "/.well-known/ai-catalog.json"


def fits(document: object, definition: str) -> None:
    """Raises where `document` is not what the official API, server.json's schema and our stricter one call so."""
    judges = [Draft202012Validator({"$ref": f"#/$defs/{definition}", **STRICTER}, format_checker=FormatChecker())]
    if definition in API["components"]["schemas"]:
        schema = {"$ref": f"#/components/schemas/{definition}", **API}
        judges.append(Draft202012Validator(schema, format_checker=FormatChecker()))
    for judge in judges:
        judge.validate(document)
    for server in servers(document):
        Draft7Validator(SERVER, format_checker=FormatChecker()).validate(server)


def servers(document: Any) -> list[object]:
    listed = document.get("servers", [document]) if isinstance(document, dict) else []
    return [entry["server"] for entry in listed if "server" in entry]


def get(catalogue: Catalogue, path: str, query: str = "") -> dict:
    document = catalogue.find("GET", path, query.encode())
    assert document.status == 200
    return json.loads(document.body)


def fleet(agents: dict[str, Agent], **more: object) -> FleetReading:
    return FleetReading(resolve(Fleet(name="Demo & Co", agents=agents, **more)), None)


def published(
    loaded: FleetReading, time, placement: str = "container", condition: Condition | None = None
) -> Catalogue:
    catalogue = Catalogue(now=time.now, placement=placement)
    catalogue.publish(loaded, lambda _: condition or Condition("ok"))
    return catalogue


def agent(**more: object) -> Agent:
    return Agent(module="agents.x", port=8201, **more)


def test_the_same_agent_in_each_face(time, folder: Path) -> None:
    loaded = fleet_file.load(folder / "agents.yaml")
    catalogue = published(loaded, time, condition=Condition("degraded", Reason("SelfReported", "slow")))
    whole = get(catalogue, "/v0.1/servers")
    fits(whole, "ServerList")
    harper = whole["servers"][0]
    assert harper["server"] == {
        "$schema": server_json.SCHEMA,
        "name": "com.example.project/harper",
        "title": "Harper",
        "description": "My assistant",
        "version": "1.0.0",
        "remotes": [{"type": "streamable-http", "url": "http://my-host.example.com:8201/mcp"}],
    }
    assert harper["_meta"][registry_api.AGENT_META] == {
        "status": "degraded",
        "message": "slow",
        "reason": "SelfReported",
        "capabilities": {
            "model": "my-model-name",
            "vision": False,
            "context_window": 200000,
            "max_output_tokens": 32000,
        },
        "internalUrl": "http://harper:8080/mcp",
    }
    assert get(catalogue, "/v0.1/servers/com.example.project/harper/versions/latest") == harper
    card = get(catalogue, "/server-cards/tech-research")
    fits(card, "ServerCard")
    assert (card["name"], card["description"]) == ("com.example.project/tech-research", "Tech Research")
    catalog = get(catalogue, CATALOG)
    fits(catalog, "Catalog")
    assert catalog["entries"][0] == {
        "identifier": "urn:air:project.example.com:mcp:harper",
        "displayName": "Harper",
        "type": "application/mcp-server-card+json",
        "url": "http://my-host.example.com:8200/server-cards/harper",
    }


def test_each_face_has_its_type(time, folder: Path) -> None:
    catalogue = published(fleet_file.load(folder / "agents.yaml"), time)
    types = {
        path: dict(catalogue.find("GET", path, b"").headers)[b"content-type"].decode()
        for path in (PATH, "/v0.1/servers", CATALOG, "/server-cards/harper")
    }
    assert list(types.values()) == [
        "application/json",
        "application/json",
        "application/ai-catalog+json",
        "application/mcp-server-card+json",
    ]


def test_no_card_for_nobody(time, folder: Path) -> None:
    assert published(fleet_file.load(folder / "agents.yaml"), time).find("GET", "/server-cards/nobody", b"") is None


@pytest.mark.parametrize(
    ("placement", "publish", "remotes"),
    [
        ("container", True, ["http://localhost:8201/mcp"]),
        ("container", False, None),
        ("local", True, ["http://localhost:8201/mcp"]),
        ("local", False, ["http://127.0.0.1:8201/mcp"]),
    ],
)
def test_only_what_outsiders_can_reach(time, placement: str, publish: bool, remotes: list[str] | None) -> None:
    catalogue = published(fleet({"a": agent(publish=publish)}), time, placement)
    (entry,) = get(catalogue, "/v0.1/servers")["servers"]
    assert [each["url"] for each in entry["server"].get("remotes", [])] == (remotes or [])
    assert "8080" not in json.dumps(get(catalogue, "/server-cards/a"))


def test_icons_the_schema_takes(time) -> None:
    icons = [
        Icon(src="https://example.com/a.svg", sizes="any 48x48 big"),
        Icon(src="https://example.com/b.png"),
        Icon(src="/relative.png"),
        Icon(src="http://example.com/plain.png"),
        Icon(src="https://example.com/" + "x" * 250),
        Icon(src="https://[broken"),
    ]
    catalogue = published(fleet({"a": agent(icons=icons)}), time)
    (entry,) = get(catalogue, "/v0.1/servers")["servers"]
    assert entry["server"]["icons"] == [
        {"src": "https://example.com/a.svg", "sizes": ["any", "48x48"]},
        {"src": "https://example.com/b.png"},
    ]
    (seed,) = get(catalogue, PATH)["servers"]
    assert len(seed["server"]["icons"]) == len(icons), "the seed's face is the seed's"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "short"),
        ("two\n lines", "two lines"),
        ("", "-"),
        ("word " * 30, ("word " * 19)[:-1] + "…"),
        ("x" * 200, "x" * 99 + "…"),
    ],
)
def test_a_long_description_is_cut_at_a_word(text: str, expected: str) -> None:
    assert registry_api.shorten(text) == expected
    assert len(expected) <= 100


def test_a_long_title_and_description_are_cut(time) -> None:
    catalogue = published(fleet({"a": agent(title="long " * 60, description="word " * 60)}), time)
    whole = get(catalogue, "/v0.1/servers")
    fits(whole, "ServerList")
    fits(get(catalogue, "/server-cards/a"), "ServerCard")
    assert whole["servers"][0]["server"]["description"].startswith("word word")


VERSION = st.from_regex(
    r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}(-[0-9A-Za-z.-]{1,9})?(\+[0-9A-Za-z.-]{1,9})?", fullmatch=True
)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=300)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=TEXT, title=TEXT, about=TEXT | st.just(""), version=VERSION, icon=TEXT, sizes=TEXT | st.none(), reason=TEXT)
def test_any_file_gives_documents_that_fit(time, name, title, about, version, icon, sizes, reason) -> None:
    written = agent(title=title, description=about, icons=[Icon(src=icon, sizes=sizes)])
    loaded = FleetReading(resolve(Fleet(name=name, version=version, agents={"a_b": written})), None)
    catalogue = published(loaded, time, condition=Condition("error", Reason("SelfReported", reason)))
    fits(get(catalogue, "/v0.1/servers"), "ServerList")
    fits(get(catalogue, "/server-cards/a-b"), "ServerCard")
    fits(get(catalogue, CATALOG), "Catalog")


async def test_who_follows_the_changes_hears_of_removals(time, folder: Path) -> None:
    loaded = fleet_file.load(folder / "agents.yaml")
    catalogue = published(loaded, time)
    await time.advance(60)
    left = replace(loaded.fleet, agents={"harper": loaded.fleet.agents["harper"]})
    catalogue.publish(FleetReading(left, loaded.capabilities), lambda _: Condition("ok"))
    assert [each["server"]["title"] for each in get(catalogue, "/v0.1/servers")["servers"]] == ["Harper"]
    (gone,) = get(catalogue, "/v0.1/servers", "updated_since=2026-03-12T10:00:30Z")["servers"]
    fits(gone, "ServerResponse")
    assert gone["_meta"][server_json.OFFICIAL_META] == {
        "status": "deleted",
        "statusChangedAt": "2026-03-12T10:01:00Z",
        "publishedAt": "2026-03-12T10:00:00Z",
        "updatedAt": "2026-03-12T10:01:00Z",
        "isLatest": True,
    }
    assert catalogue.find("GET", "/server-cards/tech-research", b"") is None
    catalogue.publish(loaded, lambda _: Condition("ok"))
    assert get(catalogue, "/v0.1/servers", "include_deleted=true")["metadata"]["count"] == 2


async def test_a_change_of_state_is_an_update_a_new_version_another_publication(time, folder: Path) -> None:
    loaded = fleet_file.load(folder / "agents.yaml")
    catalogue = published(loaded, time)
    await time.advance(60)
    catalogue.publish(loaded, lambda _: Condition("error", Reason("ConnectionRefused", "refused")))
    await time.advance(60)
    raised = FleetReading(replace(loaded.fleet, version="2.0.0"), None)

    def dates() -> list[str]:
        meta = get(catalogue, "/v0.1/servers")["servers"][0]["_meta"][server_json.OFFICIAL_META]
        return [meta["publishedAt"][11:16], meta["updatedAt"][11:16], meta["statusChangedAt"][11:16]]

    assert dates() == ["10:00", "10:01", "10:00"]
    catalogue.publish(raised, lambda _: Condition("error", Reason("ConnectionRefused", "refused")))
    assert dates() == ["10:02", "10:02", "10:02"]


def test_the_schema_refuses_what_the_seed_publishes(time) -> None:
    """The check can fail: the seed's own form is no strict one."""
    seed = server_json.server(fleet({"a": agent()}).fleet, "a", None, "container")
    entry = server_json.entry(seed, datetime(2026, 3, 12, tzinfo=UTC), "ok", Reason())
    with pytest.raises(Exception, match="'description' is a required property"):
        fits(entry, "ServerResponse")

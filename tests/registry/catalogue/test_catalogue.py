"""The seed's catalogue (seed 000 section 1, seed 001 Registry Server), to the letter."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pallas_contract.documents.reason import Reason
from pallas_contract.documents.server_json import OFFICIAL_META
from pallas_registry import fleet_file
from pallas_registry.catalogue.catalogue import Catalogue
from pallas_registry.fleet_file import FleetReading
from pallas_registry.prebuilt.documents import Document
from pallas_registry.state.status import NOT_PROBED, Condition


@pytest.fixture
def loaded(folder: Path) -> FleetReading:
    return fleet_file.load(folder / "agents.yaml")


@pytest.fixture
def catalogue(time) -> Catalogue:
    return Catalogue(now=time.now, placement="local")


def well(_agent: str) -> Condition:
    return Condition("ok")


def entries(catalogue: Catalogue) -> list[dict]:
    return json.loads(catalogue.document.body)["servers"]


def test_an_entry_is_the_seeds(catalogue: Catalogue, loaded: FleetReading) -> None:
    catalogue.publish(loaded, well)
    harper, research = entries(catalogue)
    assert harper == {
        "server": {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": "com.example.project/harper",
            "title": "Harper",
            "description": "My assistant",
            "version": "1.0.0",
            "remotes": [{"type": "streamable-http", "url": "http://my-host.example.com:8201/mcp"}],
            "capabilities": {
                "model": "my-model-name",
                "vision": False,
                "context_window": 200000,
                "max_output_tokens": 32000,
            },
        },
        "_meta": {
            "io.modelcontextprotocol.registry/official": {
                "status": "active",
                "updatedAt": "2026-03-12T10:00:00Z",
                "isLatest": True,
            },
            "io.pallas-kit/health": {"status": "ok"},
        },
    }
    assert research["server"]["name"] == "com.example.project/tech-research"


def test_in_containers_the_address_inside_the_network_follows(time, loaded: FleetReading) -> None:
    catalogue = Catalogue(now=time.now, placement="container")
    catalogue.publish(loaded, well)
    assert [remote["url"] for remote in entries(catalogue)[1]["server"]["remotes"]] == [
        "http://my-host.example.com:8250/mcp",
        "http://tech-research:8080/mcp",
    ]


def test_without_a_model_there_are_no_capabilities(catalogue: Catalogue, folder: Path) -> None:
    (folder / "fastagent.config.yaml").unlink()
    catalogue.publish(fleet_file.load(folder / "agents.yaml"), well)
    assert "capabilities" not in entries(catalogue)[0]["server"]


def test_icons_are_published_as_they_are_written(catalogue: Catalogue, folder: Path) -> None:
    icons = [{"src": "/icons/harper.svg", "sizes": "any"}, {"src": "https://example.com/harper.png"}]
    path = folder / "agents.yaml"
    path.write_text(path.read_text().replace("title: Harper", f"title: Harper, icons: {json.dumps(icons)}"))
    catalogue.publish(fleet_file.load(path), well)
    assert entries(catalogue)[0]["server"]["icons"] == icons


async def test_only_what_changed_is_dated_anew(catalogue: Catalogue, loaded: FleetReading, time) -> None:
    catalogue.publish(loaded, lambda _: NOT_PROBED)
    await time.advance(60)
    catalogue.publish(
        loaded,
        lambda agent: Condition("error", Reason("ConnectionRefused", "refused")) if agent == "harper" else NOT_PROBED,
    )
    harper, research = (entry["_meta"] for entry in entries(catalogue))
    assert harper["io.modelcontextprotocol.registry/official"]["updatedAt"] == "2026-03-12T10:01:00Z"
    assert harper["io.pallas-kit/health"] == {"status": "error", "message": "refused", "reason": "ConnectionRefused"}
    assert research["io.modelcontextprotocol.registry/official"]["updatedAt"] == "2026-03-12T10:00:00Z"


async def test_a_registry_started_again_says_the_same(loaded: FleetReading, time) -> None:
    said = []
    for _ in range(2):
        catalogue = Catalogue(now=time.now, placement="local")
        catalogue.publish(loaded, lambda _: NOT_PROBED)
        catalogue.publish(loaded, well)
        said.append(catalogue.document.body)
        await time.advance(60)
    assert said[0] == said[1]
    catalogue.publish(loaded, lambda _: Condition("error", Reason("ConnectionRefused", "refused")))
    catalogue.publish(loaded, well)
    assert entries(catalogue)[0]["_meta"][OFFICIAL_META]["updatedAt"] == "2026-03-12T10:02:00Z"


async def test_a_date_never_goes_back(catalogue: Catalogue, loaded: FleetReading, time) -> None:
    """What was in error was looked at: well again after that, it is so from now on, not since the file was written."""
    older = replace(loaded, written=time.now() - timedelta(days=1))
    said = []
    for read, condition in [
        (loaded, NOT_PROBED),
        (older, Condition("ok")),  # a file put back with its date
        (older, Condition("error", Reason("ConnectionRefused", "refused"))),
        (older, Condition("unknown", Reason("NameUnresolved", "name resolution fails"))),
        (older, Condition("ok")),
    ]:
        await time.advance(60)
        catalogue.publish(read, lambda _, condition=condition: condition)
        said.append(entries(catalogue)[0]["_meta"][OFFICIAL_META]["updatedAt"][11:16])
    assert said == ["10:00", "10:00", "10:03", "10:04", "10:05"]


async def test_nothing_changed_same_document(catalogue: Catalogue, loaded: FleetReading, time) -> None:
    catalogue.publish(loaded, well)
    before = catalogue.document
    await time.advance(60)
    catalogue.publish(loaded, well)
    assert catalogue.document is before


def test_added_removed_and_reordered_agents_show(catalogue: Catalogue, loaded: FleetReading, folder: Path) -> None:
    tags = []
    for swap in (["harper", "tech_research"], ["tech_research", "harper"], ["tech_research"]):
        fleet = replace(loaded.fleet, agents={name: loaded.fleet.agents[name] for name in swap})
        catalogue.publish(FleetReading(fleet, loaded.capabilities), well)
        names = [entry["server"]["name"].split("/")[1].replace("-", "_") for entry in entries(catalogue)]
        assert names == swap
        tags.append(catalogue.document.etag)
    assert len(set(tags)) == 3


def test_another_host_or_version_shows(catalogue: Catalogue, loaded: FleetReading) -> None:
    catalogue.publish(loaded, well)
    fleet = replace(loaded.fleet, version="2.0.0", host="elsewhere")
    catalogue.publish(FleetReading(fleet, None), well)
    server = entries(catalogue)[0]["server"]
    assert (server["version"], server["remotes"][0]["url"]) == ("2.0.0", "http://elsewhere:8201/mcp")


@pytest.mark.parametrize(
    ("public", "remote", "card"),
    [
        (
            "https://{name}.example.com",
            "https://tech-research.example.com/mcp",
            "https://registry.example.com/server-cards/tech-research",
        ),
        (
            "http://example.com:8443/ai/{name}/v1",
            "http://example.com:8443/ai/tech-research/v1/mcp",
            "http://example.com:8443/ai/registry/v1/server-cards/tech-research",
        ),
    ],
)
def test_behind_a_proxy_its_addresses_are_published(
    catalogue: Catalogue, loaded: FleetReading, public: str, remote: str, card: str
) -> None:
    fleet = replace(loaded.fleet, public_url=public)
    catalogue.publish(FleetReading(fleet, None), well)
    assert entries(catalogue)[1]["server"]["remotes"][0]["url"] == remote
    found = catalogue.find("GET", "/.well-known/ai-catalog.json", "")
    assert isinstance(found, Document)
    assert card in found.body.decode()


def test_a_registry_that_knows_nothing_yet_has_a_valid_document(catalogue: Catalogue) -> None:
    assert entries(catalogue) == []

"""Agents that registered, on every face of the registry."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pallas_registry.mcp import tools as mcp_tools
from tests.examples import examples
from tests.registry.catalogue.test_official import fits
from tests.registry.registration_client import CAPABILITIES, Open, get, register

pytestmark = pytest.mark.usefixtures("no_threads")


async def test_every_face_shows_it_and_says_that_it_registered(desk: Open, time) -> None:
    about = {"title": "Features", "description": "Makes features", "version": "2.1.0", "url": "https://x.example/mcp"}
    await desk.ask(register(**about))
    await time.advance()
    abilities = {**CAPABILITIES, "heartbeat_interval": 60.0, "registeredAt": "2026-03-12T10:00:00Z"}

    seed = get(desk, "/.well-known/mcp/server.json")["servers"][2]
    assert seed["server"] == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "com.example.project/feature-extractor",
        "title": "Features",
        "description": "Makes features",
        "version": "2.1.0",
        "remotes": [{"type": "streamable-http", "url": "https://x.example/mcp"}],
    }
    assert seed["_meta"]["io.pallas-kit/health"] == {"status": "ok"}
    assert seed["_meta"]["io.pallas-kit/registration"] == abilities

    entry = get(desk, "/v0.1/servers", "search=features")["servers"][0]
    fits(entry, "ServerResponse")
    assert entry["_meta"]["io.pallas-kit/registration"] == abilities
    catalog = get(desk, "/.well-known/ai-catalog.json")
    assert [each["displayName"] for each in catalog["entries"]] == ["Harper", "Tech Research", "Features"]
    fits(get(desk, "/server-cards/feature-extractor"), "ServerCard")

    shown = desk.service.backend("run")
    page = shown.page().decode()
    assert '<code>feature_extractor</code> <span class="mark">registered</span>' in page
    assert "due every 1 min" in page
    metrics = (await shown.metrics.scrape(""))[0].decode()
    assert 'pallas_agent_health{agent="feature_extractor"} 1.0' in metrics
    assert 'pallas_registry_heartbeat_age_seconds{agent="feature_extractor"} 0.0' in metrics
    assert "pallas_registry_registered_agents 1.0" in metrics
    result = mcp_tools.call("find_agent", {"query": "OHLCV"}, desk.service.monitor.overview)
    found = result["structuredContent"]["agents"]
    assert [(each["name"], each["registered"], each["tools"]) for each in found] == [
        ("feature_extractor", True, ["fetch_ohlcv"])
    ]
    assert len(get(desk, "/prometheus/targets")) == 2, "it is not probed, so nobody knows where its metrics are"


TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=110)


async def test_whatever_is_taken_in_fits_the_official_schemas(desk: Open, time) -> None:
    wanted = st.fixed_dictionaries(
        {},
        optional={
            "title": TEXT,
            "description": TEXT,
            "version": TEXT,
            "url": st.from_regex(r"https?://[!-~]{1,80}", fullmatch=True),
        },
    )
    said: list[dict] = [{"title": " ", "version": " "}, {"url": "http://a/%7B%7D?x=$"}, {"description": "x " * 240}]

    @settings(max_examples=examples(100), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(more=wanted)
    def collect(more: dict) -> None:
        said.append(more)

    collect()
    taken = 0
    for more in said:
        time.seconds += 1
        if (await desk.ask(register(**more))).status == 200:
            taken += 1
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            fits(get(desk, "/v0.1/servers"), "ServerList")
            fits(get(desk, "/server-cards/feature-extractor"), "ServerCard")
            fits(get(desk, "/.well-known/ai-catalog.json"), "Catalog")
            assert desk.service.backend("run").page()
    assert taken > examples(100) // 5


async def test_an_agent_without_an_address_fits_the_official_schema_too(desk: Open, time) -> None:
    await desk.ask(register())
    await time.advance()
    entry = get(desk, "/v0.1/servers", "search=feature")["servers"][0]
    fits(entry, "ServerResponse")
    assert "remotes" not in entry["server"]
    assert get(desk, "/.well-known/mcp/server.json")["servers"][2]["server"]["remotes"] == []

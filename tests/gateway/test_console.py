"""The console of the gateway: a page for everybody, agents for callers."""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway import console
from pallas_gateway.policy.policy import Policy
from tests.gateway.door import UI, opened

UP = PlainTextResponse("{}", media_type="application/json")
AGENTS = {
    "desk": {"card": "desk.md", "port": 24201, "title": "The Desk", "description": "Counts words"},
    "night_owl": {"card": "owl.md", "port": 24202},
    "clerk": {"card": "clerk.md", "port": 24203},
}
FLEET = resolve(Fleet.model_validate({"name": "desk", "agents": AGENTS}))


async def test_the_page_is_open_and_its_agents_are_not() -> None:
    async with opened({"desk": UP}, tokens={"ui": UI}, fleet=FLEET) as door:
        assert (await door.web.get("/console")).headers["content-type"] == "text/html; charset=utf-8"
        assert (await door.web.get("/console/agents.json")).status_code == 401
        asked = await door.web.get("/console/agents.json", headers={"authorization": f"Bearer {UI}"})
        assert [agent["name"] for agent in asked.json()["agents"]] == ["desk"]
        foreign = {"origin": "http://evil.example", "authorization": f"Bearer {UI}"}
        assert (await door.web.get("/console/agents.json", headers=foreign)).status_code == 403


async def test_there_is_none_where_nobody_asked_for_it() -> None:
    async with opened({"desk": UP}) as door:
        assert (await door.web.get("/console")).status_code == 404
        assert (await door.web.get("/console/agents.json")).status_code == 404


def test_those_behind_the_gateway_are_listed_by_their_names_in_its_path() -> None:
    app = console.agents(FLEET, {"desk", "night-owl"}, Policy.open().may_ask)
    rows = TestClient(app).get("/console/agents.json").json()["agents"]
    assert rows == [
        {"name": "desk", "title": "The Desk", "description": "Counts words", "mcp": "/agents/desk/mcp"},
        {"name": "night-owl", "title": "Night Owl", "description": "", "mcp": "/agents/night-owl/mcp"},
    ]


def test_a_caller_sees_those_that_it_may_ask() -> None:
    app = console.agents(FLEET, {"desk", "night-owl"}, lambda caller, agent: caller is None and agent == "desk")
    rows = TestClient(app).get("/console/agents.json").json()["agents"]
    assert [row["name"] for row in rows] == ["desk"]

"""The page as text: what it says of each agent, and that nothing in a file or an answer becomes HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from pallas_contract.documents.reason import OK, Reason
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.probe.probe import Result
from pallas_registry import fleet_file
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.fleet_file import FleetReading
from pallas_registry.mcp import tools
from pallas_registry.state.agents import AgentStates, MemberStates
from pallas_registry.state.history import Change, History
from pallas_registry.state.uptime import Uptime
from pallas_registry.status_page import overview
from pallas_registry.status_page import page as status_page_page
from pallas_registry.status_page.selection import TILES, Selection, parse
from pallas_service.console import reload

A, B = (Endpoint("http://harper:8080/mcp", f"10.0.0.{number}") for number in (1, 2))
R = Endpoint("http://tech-research:8080/mcp", "10.0.0.3")
EVIL = "<script>alert(1)</script>\"'"


class World:
    def __init__(self, loaded: FleetReading, time) -> None:
        self.loaded, self.time, self.config_ok = loaded, time, True
        self.history = History()
        self.uptime = Uptime(clock=time.clock)
        self.agent_states = AgentStates(clock=time.clock, now=time.now, on_change=self.record, on_update=lambda: None)
        self.agent_states.expect(list(loaded.fleet.agents))
        self.service_states = AgentStates(
            clock=time.clock, now=time.now, on_change=self.history.record, on_update=lambda: None, kind="service"
        )
        self.service_states.expect(list(loaded.fleet.services))

    def record(self, change: Change) -> None:
        self.history.record(change)
        self.uptime.record(change.agent, change.new)

    def view(self) -> overview.Overview:
        return overview.gather(
            self.loaded,
            "container",
            MemberStates(self.agent_states, self.service_states),
            self.history,
            now=self.time.now(),
            config_ok=self.config_ok,
            uptime=self.uptime,
        )

    def html(self, **choices) -> str:
        return status_page_page.render(self.view(), Selection(**choices), self.uptime.buckets)

    def text(self, **choices) -> str:
        """What a reader without JavaScript reads, spaces made equal."""
        reader = _Text()
        reader.feed(self.html(**choices))
        return re.sub(r"\s+", " ", " ".join(reader.said))


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data)


@pytest.fixture
def world(folder: Path, time) -> World:
    return World(fleet_file.load(folder / "agents.yaml"), time)


UNREACHABLE = Reason("Unreachable", "root: unreachable", ("root",))


def trouble(world: World) -> None:
    world.agent_states.set_sighting("harper", Sighting((A, B)))
    world.agent_states.set_sighting("tech_research", Sighting((R,)))
    world.agent_states.add_result("harper", A, Result("ok", OK, "2026-07-28", 0.003, "harper", "1.0.0"))
    world.agent_states.add_result(
        "harper",
        B,
        Result(
            "degraded", Reason("Unreachable", "Unreachable: tech_research", ("tech_research",)), "2026-07-28", 0.003
        ),
    )
    world.agent_states.add_result(
        "tech_research", R, Result("error", Reason("ConnectionRefused", "connection refused"))
    )


async def test_everything_about_an_agent(world: World) -> None:
    trouble(world)
    await world.time.advance(75)
    said = world.text()
    for words in (
        "1 of 2 down",
        "Harper harper My assistant",
        "▲ degraded for 1 min",
        "1 of 2 well",
        "10.0.0.2: Unreachable: tech_research",
        "3 ms",
        "because tech_research : connection refused",
        "harper degraded because tech_research: connection refused",
        "1 min ago",
        "unknown → ■ error connection refused",
    ):
        assert words in said
    detailed = world.text(focus="harper")
    for words in (
        "10.0.0.2",
        "2026-07-28",
        "my-model-name",
        "Depends on tech_research",
        "http://my-host.example.com:8201/mcp",
        "Last hour: 100 % of 1 min",
        "Tools not told yet",
    ):
        assert words in detailed
    assert "Needed by harper" in world.text(focus="tech_research")


@pytest.mark.parametrize(
    ("gateway", "public", "link"),
    [
        ({"console": True}, None, "http://my-host.example.com:24190/console"),
        ({"console": True, "publish": "0.0.0.0", "port": 24191}, None, "http://my-host.example.com:24191/console"),
        ({"console": True}, "https://{name}.example.com", "https://gateway.example.com/console"),
        ({"console": True, "publish": False}, None, ""),
        ({"console": False}, None, ""),
        (None, None, ""),
    ],
)
def test_a_link_to_the_console_that_readers_can_open(
    world: World, gateway: dict[str, Any] | None, public: str | None, link: str
) -> None:
    written = Gateway.model_validate({"agents": ["harper"], **gateway}) if gateway else None
    fleet = replace(world.loaded.fleet, gateway=written, public_url=public)
    world.loaded = replace(world.loaded, fleet=fleet)
    assert re.findall(r'href="([^"]*console[^"]*)"', world.html()) == ([link, f"{link}#/calls"] if link else [])


def test_the_worst_first(world: World) -> None:
    trouble(world)
    assert [row.agent for row in world.view().rows] == ["tech_research", "harper"]


def test_before_the_first_probe(world: World) -> None:
    said = world.text()
    assert "2 of 2 not known yet" in said
    assert "not yet" in said
    assert "None since the registry started" in said


def test_a_broken_file_is_said_at_the_top(world: World) -> None:
    assert "cannot be used" not in world.text()
    world.config_ok = False
    assert "agents.yaml cannot be used" in world.text()


def test_a_service_that_is_named_is_marked(world: World) -> None:
    loaded = fleet_file.load(Path(__file__).parents[3] / "examples" / "02-pallas" / "agents.yaml")
    world = World(loaded, world.time)
    world.agent_states.set_sighting("research", Sighting((R,)))
    world.agent_states.add_result(
        "research", R, Result("degraded", Reason("Unreachable", "Unreachable: neo4j_cypher", ("neo4j_cypher",)))
    )
    nodes = {node.name: node for node in world.view().nodes}
    assert (nodes["neo4j_cypher"].state, nodes["argos"].state) == ("suspect", "service")
    assert nodes["research"].root


WEATHER = "services: {weather: {module: w, port: 8301}, vectors: {image: v, port: 6333, provides: other}}\n"
AT_WEATHER = Endpoint("http://weather:8080/mcp", "10.0.0.9", "mcp")


@pytest.fixture
def served(folder: Path, time) -> World:
    """Two agents that are well, and two services."""
    path = folder / "agents.yaml"
    path.write_text(path.read_text().replace("depends_on: [tech_research]", "depends_on: [weather]") + WEATHER)
    world = World(fleet_file.load(path), time)
    for agent, endpoint in (("harper", A), ("tech_research", R)):
        world.agent_states.set_sighting(agent, Sighting((endpoint,)))
        world.agent_states.add_result(agent, endpoint, Result("ok"))
    world.service_states.set_sighting("weather", Sighting((AT_WEATHER,)))
    world.service_states.add_result("weather", AT_WEATHER, Result("ok", name="another name is no trouble"))
    not_asked = Reason("NotProbed", "not probed: it is shy")
    world.service_states.set_sighting("vectors", Sighting(problem=not_asked, unsure=True))
    return world


def test_services_are_shown_with_the_reason_where_nobody_asks(served: World) -> None:
    text = served.text()
    assert "All well" in text
    assert "Weather weather ● ok" in text
    assert "Vectors vectors ○ unknown for 0 s not probed: it is shy" in text
    assert {node.name: node.state for node in served.view().nodes}["weather"] == "ok"


def test_a_service_that_is_down_is_the_headline_though_every_agent_is_well(served: World) -> None:
    refused = Result("error", Reason("ConnectionRefused", "connection refused"))
    served.service_states.add_result("weather", AT_WEATHER, refused)
    assert "1 of 2 services down" in served.text()
    assert tools.of_fleet(served.view()).message == "weather: connection refused"
    blaming = Result("degraded", Reason("Unreachable", "Unreachable: weather", ("weather",)))
    served.agent_states.add_result("harper", A, blaming)
    text = served.text()
    assert "1 of 2 degraded" in text
    assert "harper degraded because weather: connection refused" in text
    assert '<a href="#service-weather">weather</a>: connection refused' in status_page_page.render(served.view())


def test_a_service_that_wants_credentials_is_there(served: World) -> None:
    unauthorized = Reason("Unauthorized", "reachable, needs credentials (HTTP 401)")
    served.service_states.add_result("weather", AT_WEATHER, Result("unauthenticated", unauthorized))
    assert "All well" in served.text()
    assert tools.of_fleet(served.view()).status == "ok"


def test_nothing_becomes_html(world: World) -> None:
    """Names, reasons, last words, tools and addresses come from strangers: in a row, its own part and the drawing."""
    fleet = world.loaded.fleet
    agent = fleet.agents["harper"].model_copy(update={"title": EVIL, "description": EVIL})
    loaded = FleetReading(
        replace(fleet, name=EVIL, version=EVIL, agents={"harper": agent}), None, servers=(EVIL,), model=EVIL
    )
    world = World(loaded, world.time)
    world.agent_states.set_sighting("harper", Sighting((Endpoint(f"http://{'x'}/mcp", EVIL),)))
    world.agent_states.add_result(
        "harper",
        world.agent_states.endpoints("harper")[0],
        Result("error", Reason("Unreachable", EVIL, (EVIL,)), EVIL, 0, EVIL, EVIL, {EVIL: ToolContract(EVIL)}),
    )
    world.agent_states.set_undeclared((EVIL,))
    for choices in ({}, {"focus": "harper"}, {"focus": EVIL}, {"group": "cause"}, {"q": EVIL, "group": "level"}):
        page = world.html(**choices)
        assert (page.count("<script"), page.count(reload.ELEMENT)) == (2, 1), "its own"
        assert "alert(1)" in page
        tags = _Tags()
        tags.feed(page)
        assert tags.strange == [], choices


class _Tags(HTMLParser):
    """Reads the attributes that could run something, or lead somewhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.strange: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            leads_away = name in ("href", "src", "action") and re.match(r"[a-z]*:|//", value or "", re.IGNORECASE)
            if name.startswith("on") or name == "style" or leads_away:
                self.strange.append((name, value))


def test_a_query_never_becomes_html(world: World) -> None:
    """Every choice is a stranger's: a link to the page may have anything in it."""
    for key in ("q", "state", "group", "sort", "page", "focus", "steps", "zoom", "other"):
        for text in (EVIL, "\0", "\u202e", "%ff", "'" * 300, "javascript:alert(1)", "-1", "9" * 50, "\u0663"):
            query = urlencode({key: text}).encode()
            page = status_page_page.render(world.view(), parse(query), world.uptime.buckets)
            tags = _Tags()
            tags.feed(page)
            assert (page.count("<script"), page.count(reload.ELEMENT), tags.strange) == (2, 1, []), query


def big(world: World, count: int, **changes) -> World:
    """A fleet of `count` agents, all well and each called by the one before the last of its ten."""
    agent = world.loaded.fleet.agents["harper"]
    agents = {
        f"agent_{n}": agent.model_copy(
            update={"title": f"Agent {n}", "depends_on": {f"agent_{n // 10}": None} if n > 9 else {}, **changes}
        )
        for n in range(count)
    }
    world = World(FleetReading(replace(world.loaded.fleet, agents=agents), None), world.time)
    for name in agents:
        where = Endpoint(f"http://{name}/mcp", "10.0.0.1")
        world.agent_states.set_sighting(name, Sighting((where,)))
        world.agent_states.add_result(name, where, Result("ok", OK, "2026-07-28", 0.004, name, "1.0.0"))
    return world


def fail(world: World, name: str, reason: Reason) -> None:
    state = "degraded" if reason.about else "error"
    world.agent_states.add_result(name, world.agent_states.endpoints(name)[0], Result(state, reason))


def test_a_very_big_fleet_has_a_bounded_page(world: World) -> None:
    text = big(world, TILES + 7).text()
    assert f"The first {TILES} of {TILES + 7} are on the map" in text
    assert "page 1 of 17" in text


LIMIT = 150_000
"""Bytes of all that a reader loads (issue 17)."""


@pytest.mark.parametrize(
    "choices", [{}, {"group": "level"}, {"group": "cause", "focus": "agent_3"}, {"sort": "uptime"}]
)
@pytest.mark.parametrize("down", [0, 5, 200])
def test_two_hundred_agents_are_less_than_150_kb_in_all(world: World, down: int, choices: dict) -> None:
    described = "Looks for what others have not found, in more places than one would think of at first"
    world = big(world, 200, description=described)
    for number in range(down):
        fail(world, f"agent_{number}", Reason("SelfReported", f"{number}: " + "it has a long story to tell " * 20))
    assets = sum(len(document.body) for path, document in status_page_page.assets().items() if "svg" not in path)
    assert len(world.html(**choices).encode()) + assets < LIMIT


def test_a_very_big_fleet_may_be_down_altogether(world: World) -> None:
    agent = world.loaded.fleet.agents["harper"].model_copy(update={"depends_on": {}})
    agents = {"root": agent} | {f"a{n}": agent.model_copy(update={"depends_on": {"root": None}}) for n in range(600)}
    world = World(FleetReading(replace(world.loaded.fleet, agents=agents), None), world.time)
    for name in agents:
        where = Endpoint(f"http://{name}/mcp", "10.0.0.1")
        world.agent_states.set_sighting(name, Sighting((where,)))
        blames = 0 < int(name[1:] or 0) <= 100 if name != "root" else False
        world.agent_states.add_result(
            name,
            where,
            Result("error", UNREACHABLE if blames else Reason("ConnectionRefused", "connection refused")),
        )
    text = world.text()
    assert "601 of 601 down" in text
    assert f"and {501 - status_page_page.MOST_TROUBLES} more" in text
    assert f"and {101 - status_page_page.MOST_SUFFERING} more because of the same" in text


async def test_many_readers_in_a_second_are_one_rendering(world: World) -> None:
    rendered, version = [], [0]

    def gather() -> overview.Overview:
        rendered.append(1)
        return world.view()

    page = status_page_page.StatusPage(gather, world.uptime.buckets, version=lambda: version[0], clock=world.time.clock)
    for _ in range(5):
        page.html()
    assert len(rendered) == 1
    version[0] = 1
    page.html()
    assert len(rendered) == 2, "a change shows at once"
    await world.time.advance(1)
    page.html()
    assert len(rendered) == 3


async def test_each_choice_has_its_page_and_none_grows_old(world: World) -> None:
    page = status_page_page.StatusPage(
        world.view, world.uptime.buckets, version=lambda: world.history.rings, clock=world.time.clock
    )
    assert b"2 of 2 not known yet" in page.html()
    assert b"No agent fits" in page.html(b"q=nobody")
    trouble(world)
    assert b"1 of 2 down" in page.html()
    assert b"1 of 2 down" in page.html(b"q=nobody")
    for number in range(3 * status_page_page.MOST_RENDERED):
        page.html(f"q={number}".encode())
    assert len(page._rendered) <= status_page_page.MOST_RENDERED


def test_its_assets_are_its_own() -> None:
    for path, document in status_page_page.assets().items():
        assert path.startswith("/static/")
        without_namespace = document.body.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"//cdn" not in document.body
        assert b"http:" not in without_namespace
        assert b"https:" not in without_namespace


@pytest.mark.parametrize(
    ("seconds", "span"), [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3600, "1 h"), (86400 * 3, "3 d")]
)
def test_spans(seconds: float, span: str) -> None:
    assert status_page_page._span(seconds) == span

"""The status page in a browser: readable without JavaScript, live with it, usable by keyboard, light and dark.

One Chromium for all; a registry in this process, over five agents for each test and over 200 for those of a big fleet.

Screenshots go to the folder in PALLAS_SCREENSHOTS, if it is set.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvicorn

from pallas_contract.documents.reason import NOT_FOUND, Reason
from pallas_contract.documents.reason import OK as WELL
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.probe.probe import Result
from pallas_registry import settings
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.http.app import create_app
from pallas_registry.service import Service
from pallas_service.console import reload
from tests.browser import Lost, is_fault
from tools.browser import CHROMIUM, follow, load

playwright = pytest.importorskip("playwright.async_api")
axe = pytest.importorskip("axe_playwright_python.async_playwright")
playwright.expect.set_options(timeout=60_000)  # milliseconds: for a machine that does other work
pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: tools/chromium"),
]

DESK = (1280, 900)
PHONE = (360, 740)
SIZES = """async () => {
  const sizes = {};
  for (const { name } of ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type)))
    if (!name.endsWith("/events"))  // of a stream that has broken, which has no end
      sizes[name] = (await (await fetch(name)).arrayBuffer()).byteLength;
  return sizes;
}"""
"""Gives the bytes of each document of a page: the browser notes 0 of one that is as it was loaded before."""

FLEET = """
name: pallas
version: 1.4.0
namespace: com.example.pallas
agents:
  harper: {module: agents.harper, port: 8201, title: Harper, description: "Orchestrator that delegates to Research and
    Engineering", depends_on: [research, engineering]}
  research: {module: agents.research, port: 8202, title: Research Agent, description: "Web search via Argos and
    knowledge graph via Neo4j", depends_on: [tech_research, argos, neo4j]}
  tech_research: {module: agents.tech, port: 8203, title: Tech Research Agent}
  engineering: {module: agents.engineering, port: 8204, depends_on: [gitea], description: "Shell access <b>and</b> Git"}
  scout: {module: agents.scout, port: 8205}
services:
  argos: {module: s.argos, port: 8211}
  neo4j: {module: s.neo4j, port: 8212}
  gitea: {module: s.gitea, port: 8213}
"""
SICK = Result(
    "degraded", Reason("Unreachable", "Unreachable: neo4j", ("neo4j",)), "2026-07-28", 0.004, "research", "1.4.0"
)


TOOLS = {"ask": ToolContract("1"), "get_health": ToolContract("2")}


class Fleet:
    """Where agents and services are and what they answer; a test changes `answers`."""

    def __init__(self, agents: Sequence[str] = ("harper", "research", "tech_research", "engineering")) -> None:
        self.where = {agent: [Endpoint(f"http://{agent}:8080/mcp", f"10.0.{n}.2")] for n, agent in enumerate(agents)}
        if "research" in self.where:
            self.where["research"].append(Endpoint("http://research:8080/mcp", "10.0.1.3"))
        self.answers = {agent: Result("ok", WELL, "2026-07-28", 0.003, agent, "1.4.0", TOOLS) for agent in agents}
        for service in ("argos", "neo4j", "gitea"):
            self.where[service] = [Endpoint(f"http://{service}:8080/mcp", "10.0.9.2")]
            self.answers[service] = Result("ok", WELL)

    undeclared: tuple[str, ...] = ()

    async def sweep(self, agents, tell) -> None:
        for agent in agents:
            found = tuple(self.where.get(agent, ()))
            tell(agent, Sighting(found) if found else Sighting(problem=NOT_FOUND))

    async def check(self, endpoint: Endpoint, _before: Result | None) -> Result:
        return self.answers[endpoint.url.split("/")[2].split(":")[0]]


def big_fleet(count: int) -> str:
    """Return the text of a fleet file of `count` agents in three levels, all of which need one service."""
    lines = ["name: pallas", "version: 1.4.0", "namespace: com.example.pallas", "agents:"]
    for number in range(count):
        needs = [f"agent_{other}" for other in range(number * 8 + 4, number * 8 + 12) if other < count] + ["argos"]
        about = f"Answers questions about topic {number}, and asks those who know more"
        lines.append(
            f"  agent_{number}: {{module: a.m, port: {9000 + number}, title: Topic {number} Agent, "
            f"description: '{about}', depends_on: [{', '.join(needs)}]}}"
        )
    return "\n".join([*lines, "services:", "  argos: {module: s.argos, port: 8211}", ""])


def break_some(fleet: Fleet, count: int) -> None:
    """One that refuses its input with its last words, one that is gone, and those who blame them or the web."""
    refused = Reason("InputRefused", "refuses its input: agents/topic.py:14: No module named 'pandas'; install it")
    fleet.answers[f"agent_{count - 1}"] = Result("error", refused)
    fleet.answers[f"agent_{count - 2}"] = Result("error", Reason("ConnectionRefused", "connection refused"))
    for caller, other in ((0, 5), (5, 44), (44, 0), (1, 13), (13, count - 1)):
        if caller < other < count:
            blames = Reason("Unreachable", f"Unreachable: agent_{other}", (f"agent_{other}",))
            fleet.answers[f"agent_{caller}"] = Result(
                "degraded", blames, "2026-07-28", 0.004, f"agent_{caller}", "1.4.0"
            )
    blames = Reason("Unreachable", "Unreachable: web_search", ("web_search",))
    fleet.answers["agent_2"] = Result("degraded", blames, "2026-07-28", 0.9, "agent_2", "1.4.0")


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@asynccontextmanager
async def served(text: str, fleet: Fleet, folder: Path, interval: float = 0.5) -> AsyncIterator[str]:
    """Yield the URL of a registry on loopback over a made-up fleet."""
    (folder / "agents.yaml").write_text(f"{text}registry: {{probe_interval: {interval}}}\n")
    (folder / "fastagent.config.yaml").write_text(
        "default_model: openai.my-model\nmodel_capabilities: {vision: false}\n"
        "mcp: {servers: {web_search: {url: 'https://search.example.com/mcp'}}}\n"
    )
    follower = FleetWatcher(folder / "agents.yaml")
    loaded = follower.first()
    world = Dependencies(discovery=fleet, services=fleet, check=fleet.check)
    service = Service(settings.read({}), loaded, follower, world)
    config = uvicorn.Config(
        create_app(service.backend(run="t")), lifespan="off", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    server.capture_signals = suppress  # the tests' own signals stay the tests' own
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tasks = [asyncio.create_task(service.run()), asyncio.create_task(server.serve(sockets=[listener]))]
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = True
        service.monitor.history.close()
        tasks[0].cancel()
        with suppress(asyncio.CancelledError):
            await tasks[0]
        await tasks[1]


@pytest_asyncio.fixture(loop_scope="module")
async def url(fleet: Fleet, tmp_path: Path) -> AsyncIterator[str]:
    async with served(FLEET, fleet, tmp_path) as address:
        yield address


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def big(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """Yield the URL of a registry over 200 agents, some of them in trouble."""
    fleet = Fleet([f"agent_{number}" for number in range(200)])
    break_some(fleet, 200)
    async with served(big_fleet(200), fleet, tmp_path_factory.mktemp("big"), interval=5) as address:
        yield address


@pytest.fixture
def opened(browser):
    """A page in a fresh context that fails the test for any error in its console and any request elsewhere."""

    @asynccontextmanager
    async def open_page(url: str, query: str = "", viewport: tuple[int, int] = DESK, **choices):
        size = {"width": viewport[0], "height": viewport[1]}
        context = await browser.new_context(viewport=size, **choices)
        page = await context.new_page()
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if is_fault(message) else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(url) else wrong.append(request.url))
        await load(page, url + query)
        try:
            yield page
        finally:
            await context.close()
        assert wrong == []

    return open_page


async def shoot(page, name: str) -> None:
    folder = os.environ.get("PALLAS_SCREENSHOTS")
    if folder:
        await page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)


def break_research(fleet: Fleet) -> None:
    fleet.answers["research"] = SICK
    fleet.answers["harper"] = Result(
        "degraded",
        Reason("Unreachable", "Unreachable: research", ("research",)),
        "2026-07-28",
        0.004,
        "harper",
        "1.4.0",
    )


async def test_live_from_well_to_the_root_cause(opened, url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        expect = playwright.expect
        await expect(page.locator("#agent-harper .badge").first).to_have_text("● ok")
        await expect(page.locator("#agent-scout")).to_contain_text("name not found")
        await page.locator("#agent-research a.title").click()
        await expect(page.locator("#focus")).to_contain_text("10.0.1.3")
        await shoot(page, "light")
        break_research(fleet)
        await expect(page.locator("#agent-harper")).to_contain_text("because research: Unreachable: neo4j")
        await expect(page.locator("#troubles")).to_contain_text("harper degraded because research: Unreachable: neo4j")
        await expect(page.locator(".box.root")).to_contain_text(["Research Agent"])  # neo4j itself answers
        await expect(page.locator("#focus")).to_contain_text("Unreachable: neo4j")
        await expect(page).to_have_title("1 of 5 down · pallas")
        await shoot(page, "trouble")


@pytest.mark.parametrize("name", ["page.js", "page.css"])
async def test_a_page_is_loaded_anew_where_a_file_of_it_did_not_come(browser, url: str, name: str) -> None:
    """Else it would show for ever what held when it was loaded."""
    context = await browser.new_context()
    try:
        page = await context.new_page()
        lost = Lost()
        await page.route(f"**/static/{name}", lost)
        await load(page, url)
        async with asyncio.timeout(60):
            while lost.asked < 2:
                await asyncio.sleep(0.02)
        await playwright.expect(page.locator("#live")).to_have_text("live")
    finally:
        await context.close()


NO_WAITING = """
const later = setTimeout, kept = sessionStorage;
window.setTimeout = (work, ms) => {
  kept.waits = (kept.waits ?? "") + ms / 1000 + " ";
  addEventListener("load", () => later(work, 0));
};
"""
PAGE = f"<!doctype html>{reload.ELEMENT}<link rel=stylesheet href=page.css><script src=page.js></script>"


async def test_what_never_comes_is_waited_for_five_times_ever_longer_and_then_no_more(browser) -> None:
    """As an extension of the browser has it, which blocks the files: else what is typed would be lost each 3 s.

    Nothing goes over a network here: one that changes meanwhile would have the page loaded once more.
    """
    asked: Counter[str] = Counter()

    async def answer(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        asked[name] += 1
        if name and asked[name] <= 6:
            await route.abort("blockedbyclient")
        else:
            await route.fulfill(body="" if name else PAGE, content_type="" if name else "text/html")

    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.add_init_script(NO_WAITING)
        await page.route("**/*", answer)
        await page.goto("http://page.invalid/")
        async with asyncio.timeout(60):
            while asked["page.css"] < 6 or asked["page.js"] < 6:
                await asyncio.sleep(0.02)
        await page.wait_for_function("document.readyState === 'complete'", timeout=60_000)  # errors are told before
        assert (await page.evaluate("sessionStorage.waits")).split() == ["3", "6", "12", "24", "48"]
        await page.goto("http://page.invalid/")
        await page.wait_for_function(f"sessionStorage.getItem('{reload.KEY}') === null", timeout=60_000)
    finally:
        await context.close()


async def test_events_that_were_refused_are_asked_for_again(browser, url: str, fleet: Fleet) -> None:
    """As by a proxy whose registry restarts: the browser itself would leave it at that."""
    context = await browser.new_context()
    try:
        page = await context.new_page()
        lost = Lost(status=502)
        await page.route("**/events", lost)
        await load(page, url)
        await playwright.expect(page.locator("#live")).to_have_text("live")
        break_research(fleet)
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        assert lost.asked >= 2
    finally:
        await context.close()


async def test_a_connection_that_is_lost_without_a_word_is_said_and_given_up(browser, url: str) -> None:
    """Nothing of it tells a browser: neither the events nor the question under way would ever end."""
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    context = await browser.new_context()
    try:
        page = await context.new_page()
        await page.clock.install()
        await load(page, url)
        await playwright.expect(page.locator("#live")).to_have_text("live")
        await page.route(url, hold)
        await page.evaluate("refresh()&&0")
        async with asyncio.timeout(60):
            while not held:
                await asyncio.sleep(0.02)
        await page.clock.fast_forward(15_000)
        await playwright.expect(page.locator("#live")).to_have_text("no answer, trying again")
        await page.unroute(url)
        await page.clock.fast_forward(15_000)
        await playwright.expect(page.locator("#live")).to_have_text("live")
    finally:
        await context.close()


async def test_the_picture_for_the_readme(url: str, tmp_path: Path) -> None:
    """`make pictures`, of a registry that runs already."""
    picture = tmp_path / "pictures" / "page.png"
    program = [sys.executable, "tools/pictures.py", "--url", url, "--output", str(picture)]
    process = await asyncio.create_subprocess_exec(*program, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE)
    printed, _ = await process.communicate()
    assert (process.returncode, printed.decode()) == (0, f"wrote {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")


async def test_dark(opened, url: str, fleet: Fleet) -> None:
    break_research(fleet)
    async with opened(url, color_scheme="dark") as page:
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        await shoot(page, "dark")
        assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 23)"


async def test_a_telephone_shows_all_of_it_without_scrolling_sideways(opened, url: str, fleet: Fleet) -> None:
    break_research(fleet)
    async with opened(url, viewport=PHONE) as page:
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        await shoot(page, "phone")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_readable_without_javascript(opened, url: str, fleet: Fleet) -> None:
    break_research(fleet)
    async with opened(url, java_script_enabled=False) as page:
        await asyncio.sleep(0)
        while "because research" not in await page.locator("#agent-harper").inner_text():
            await load(page, url)
        await follow(page, page.locator("#agent-research a.title"))
        await playwright.expect(page.locator("#focus")).to_contain_text("10.0.1.3")
        await shoot(page, "without-javascript")
        assert await page.locator("button.copy").first.is_hidden(), "it would do nothing"
        await page.locator("#agent-tech_research form button").click()
        await page.wait_for_url("**/?focus=tech_research#focus")


async def test_by_keyboard_alone(opened, url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        await playwright.expect(page.locator("#live")).to_have_text("live")
        await page.keyboard.press("Tab")
        assert await focused(page) == "Skip to the agents"
        await page.keyboard.press("Enter")
        reached = []
        for _ in range(80):
            await page.keyboard.press("Tab")
            reached.append(await focused(page))
        assert "Harper" in reached
        assert "Copy URL of harper" in reached
        assert "Recheck harper" in reached
        assert "openapi" in "".join(reached).lower()


async def test_the_focus_stays_where_it_was_when_the_page_changes(opened, url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        await page.locator("#agent-harper form button").focus()
        break_research(fleet)
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        assert await focused(page) == "Recheck harper"


async def focused(page) -> str:
    return " ".join((await page.evaluate("document.activeElement.textContent")).split())


async def violations(page) -> list[tuple[str, str]]:
    """Return the rules of axe, all of them, that the page breaks, and where."""
    report = (await axe.Axe().run(page)).response["violations"]
    return [(rule["id"], node["html"]) for rule in report for node in rule["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_accessible(opened, url: str, fleet: Fleet, scheme: str) -> None:
    """axe, all its rules, with everything open and something of each state on the page."""
    break_research(fleet)
    async with opened(url, "?focus=research", color_scheme=scheme, bypass_csp=True) as page:
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        assert await violations(page) == []


async def test_a_recheck_by_hand(opened, url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        await playwright.expect(page.locator("#live")).to_have_text("live")
        await page.locator("#agent-harper form button").click()
        await playwright.expect(page.locator("#live")).to_have_text("harper: ok")


async def settled(page) -> None:
    """Wait until the page of the big fleet is live and knows of everybody."""
    await playwright.expect(page.locator("#live")).to_have_text("live")
    await playwright.expect(page.locator("#headline")).to_have_text("2 of 200 down")


@pytest.mark.parametrize("viewport", [DESK, PHONE])
async def test_the_first_view_of_200_agents_fits_a_screen(opened, big: str, viewport: tuple[int, int]) -> None:
    async with opened(big, viewport=viewport) as page:
        await settled(page)
        await shoot(page, f"big-{viewport[0]}")
        await playwright.expect(page.locator("#map a")).to_have_count(200)
        bottom = await page.evaluate("document.getElementById('map').getBoundingClientRect().bottom")
        assert bottom <= viewport[1], "all of them, and what is wrong, without scrolling"
        assert await page.evaluate("document.documentElement.scrollWidth") <= viewport[0]
        smallest = await page.evaluate(
            "Math.min(...[...document.querySelectorAll('#map a')].map((a) => Math.min(a.offsetWidth, a.offsetHeight)))"
        )
        assert smallest >= 24, "WCAG 2.2, 2.5.8: large enough for a finger"
        loaded = await page.evaluate(SIZES)
    assert {url.removeprefix(big) for url in loaded if loaded[url]} >= {"", "static/page.css", "static/page.js"}
    assert sum(loaded.values()) < 150_000, "uncompressed, each document once"


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESK), ("dark", DESK), ("light", PHONE)])
async def test_a_big_fleet_is_accessible(opened, big: str, scheme: str, viewport: tuple[int, int]) -> None:
    choices = {"color_scheme": scheme, "bypass_csp": True}
    async with opened(big, "?focus=agent_5&group=level", viewport, **choices) as page:
        await settled(page)
        await page.locator("#wrong summary").click()
        await shoot(page, f"big-focus-{scheme}-{viewport[0]}")
        assert await violations(page) == []


async def test_search_filter_and_focus_without_loading_the_page_anew(opened, big: str) -> None:
    expect = playwright.expect
    async with opened(big) as page:
        await settled(page)
        await page.evaluate("window.mark = 1")
        await page.locator("#counts .degraded").click()
        await expect(page.locator("#agents tbody tr")).to_have_count(5)
        await expect(page.locator("#filter select[name=state]")).to_have_value("degraded")
        await page.locator("#filter input").fill("web_search")
        await expect(page.locator("#agents tbody tr")).to_have_count(1)
        assert await page.evaluate("location.search") == "?q=web_search&state=degraded"
        await expect(page.locator("#filter input")).to_be_focused()
        await page.locator("#agent-agent_2 a.title").click()
        await expect(page.locator("#focus")).to_contain_text("Topic 2 Agent")
        await expect(page.locator("#focus")).to_be_focused()
        await expect(page.locator("#graph .here")).to_contain_text("Topic 2 Agent")
        await page.locator("#graph a", has_text="Web Search").click()
        await expect(page.locator("#graph-title")).to_have_text("Who depends on whom, around web_search")
        await page.locator("#graph nav a", has_text="150 %").click()
        await expect(page.locator("#graph nav [aria-current]").last).to_have_text("150 %")
        for _ in range(3):
            await page.go_back()
        await expect(page.locator("#focus")).to_be_hidden()
        await expect(page.locator("#filter input")).to_have_value("web_search")
        assert await page.evaluate("window.mark") == 1


async def test_the_same_without_javascript(opened, big: str) -> None:
    async with opened(big, java_script_enabled=False) as page:
        while "2 of 200 down" not in await page.locator("#headline").inner_text():
            await load(page, big)
        await page.locator("#filter input").fill("topic 19")
        await page.locator("#filter select[name=group]").select_option("level")
        await follow(page, page.locator("#filter button"))
        assert await page.locator("#agents tbody .group").all_inner_texts() == ["Level 2", "Level 3"]
        assert await page.locator("#agents tbody tr:not(.group)").count() == 11
        await follow(page, page.locator("#agent-agent_199 a.title"))
        assert "No module named 'pandas'" in await page.locator("#focus").inner_text(), "its last words"
        assert await page.locator("#agents tbody tr:not(.group)").count() == 11, "the choice stays"


async def test_a_url_is_copied(opened, big: str) -> None:
    async with opened(big, "?q=agent_44", permissions=["clipboard-read", "clipboard-write"]) as page:
        await settled(page)
        await page.locator("#agent-agent_44 .copy").click()
        await playwright.expect(page.locator("#live")).to_have_text("URL of agent_44 copied")
        assert await page.evaluate("navigator.clipboard.readText()") == "http://localhost:9044/mcp"


async def test_on_paper_and_without_motion(opened, big: str) -> None:
    async with opened(big, reduced_motion="reduce") as page:
        assert await page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        await page.emulate_media(media="print")
        assert await page.locator("#filter").is_hidden()
        assert await page.locator("#map").is_visible()

"""The status page in a browser: readable without JavaScript, live with it, usable by keyboard, light and dark.

Screenshots go to the folder in PALLAS_SCREENSHOTS, if it is set.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import uvicorn

from pallas_contract.documents.reason import NOT_FOUND, Reason
from pallas_contract.documents.reason import OK as WELL
from pallas_contract.probe.probe import Result
from pallas_registry import settings
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.http.app import create_app
from pallas_registry.service import Service

playwright = pytest.importorskip("playwright.async_api")
axe = pytest.importorskip("axe_playwright_python.async_playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: tools/chromium"),
]

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


class Fleet:
    """Where agents and services are and what they answer; a test changes `answers`."""

    def __init__(self) -> None:
        agents = ("harper", "research", "tech_research", "engineering")
        self.where = {agent: [Endpoint(f"http://{agent}:8080/mcp", f"10.0.{n}.2")] for n, agent in enumerate(agents)}
        self.where["research"].append(Endpoint("http://research:8080/mcp", "10.0.1.3"))
        self.answers = {agent: Result("ok", WELL, "2026-07-28", 0.003, agent, "1.4.0") for agent in agents}
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


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.fixture
async def url(fleet: Fleet, tmp_path: Path) -> AsyncIterator[str]:
    """A registry on loopback over the made-up fleet."""
    (tmp_path / "agents.yaml").write_text(FLEET + "registry: {probe_interval: 0.5}\n")
    (tmp_path / "fastagent.config.yaml").write_text(
        "default_model: openai.my-model\nmodel_capabilities: {vision: false}\n"
    )
    follower = FleetWatcher(tmp_path / "agents.yaml")
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


@asynccontextmanager
async def opened(url: str, **context):
    """A page in a fresh browser that fails the test for any error in its console and any request elsewhere."""
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await (await browser.new_context(viewport={"width": 1280, "height": 900}, **context)).new_page()
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(url) else wrong.append(asked.url))
        page.wrong = wrong
        await page.goto(url)
        try:
            yield page
        finally:
            await browser.close()
        assert wrong == []


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


async def test_live_from_well_to_the_root_cause(url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        expect = playwright.expect
        await expect(page.locator("#agent-harper .badge").first).to_have_text("● ok")
        await expect(page.locator("#agent-scout")).to_contain_text("name not found")
        await page.locator("#replicas-research summary").click()
        await shoot(page, "light")
        break_research(fleet)
        await expect(page.locator("#agent-harper")).to_contain_text("because research: Unreachable: neo4j")
        await expect(page.locator("#troubles")).to_contain_text("harper degraded because research: Unreachable: neo4j")
        await expect(page.locator(".box.root")).to_contain_text(["Research Agent"])  # neo4j itself answers
        await expect(page.locator("#replicas-research")).to_have_attribute("open", "")
        await expect(page).to_have_title("1 of 5 down · pallas")
        await shoot(page, "trouble")


async def test_the_picture_for_the_readme(url: str, tmp_path: Path) -> None:
    """`make pictures`, of a registry that runs already."""
    picture = tmp_path / "pictures" / "page.png"
    program = [sys.executable, "tools/pictures.py", "--url", url, "--output", str(picture)]
    process = await asyncio.create_subprocess_exec(*program, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE)
    printed, _ = await process.communicate()
    assert (process.returncode, printed.decode()) == (0, f"wrote {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")


async def test_dark(url: str, fleet: Fleet) -> None:
    break_research(fleet)
    async with opened(url, color_scheme="dark") as page:
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        await shoot(page, "dark")
        assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 23)"


async def test_a_telephone_shows_all_of_it_without_scrolling_sideways(url: str, fleet: Fleet) -> None:
    break_research(fleet)
    async with opened(url) as page:
        await page.set_viewport_size({"width": 360, "height": 740})
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        await shoot(page, "phone")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_readable_without_javascript(url: str, fleet: Fleet) -> None:
    break_research(fleet)
    async with opened(url, java_script_enabled=False) as page:
        await asyncio.sleep(0)
        while "because research" not in await page.locator("#agent-harper").inner_text():
            await page.reload()
        await page.locator("#replicas-research summary").click()
        await playwright.expect(page.locator("#replicas-research")).to_contain_text("10.0.1.3")
        await shoot(page, "without-javascript")
        await page.locator("#agent-tech_research button").click()
        await page.wait_for_url("**/#agent-tech_research")


async def test_by_keyboard_alone(url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        await playwright.expect(page.locator("#live")).to_have_text("live")
        await page.keyboard.press("Tab")
        assert await focused(page) == "Skip to the agents"
        await page.keyboard.press("Enter")
        reached = []
        for _ in range(30):
            await page.keyboard.press("Tab")
            reached.append(await focused(page))
        assert "1 of 1 well" in reached
        assert "Recheck harper" in reached
        assert "openapi" in "".join(reached).lower()


async def test_the_focus_stays_where_it_was_when_the_page_changes(url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        await page.locator("#agent-harper button").focus()
        break_research(fleet)
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        assert await focused(page) == "Recheck harper"


async def focused(page) -> str:
    return " ".join((await page.evaluate("document.activeElement.textContent")).split())


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_accessible(url: str, fleet: Fleet, scheme: str) -> None:
    """axe, all its rules, with everything open and something of each state on the page."""
    break_research(fleet)
    async with opened(url, color_scheme=scheme, bypass_csp=True) as page:
        await playwright.expect(page.locator("#agent-harper")).to_contain_text("because research")
        for summary in await page.locator("summary").all():
            await summary.click()
        found = (await axe.Axe().run(page)).response["violations"]
    assert [(rule["id"], node["html"]) for rule in found for node in rule["nodes"]] == []


async def test_a_recheck_by_hand(url: str, fleet: Fleet) -> None:
    async with opened(url) as page:
        await playwright.expect(page.locator("#live")).to_have_text("live")
        await page.locator("#agent-harper button").click()
        await playwright.expect(page.locator("#live")).to_have_text("harper: ok")

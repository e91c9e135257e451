"""The dashboard of examples/05-atlas in a browser, from a gateway with the policy of the example, before its tools."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import mcp_types as t
import pytest
from home_tools.home import Home
from home_tools.server import server

from pallas_gateway import settings
from pallas_gateway.app import App, Pages
from pallas_gateway.application import files
from pallas_gateway.confirmation.api import Api
from pallas_gateway.confirmation.confirmations import Confirmations
from pallas_gateway.confirmation.gatekeeper import Gatekeeper
from pallas_gateway.data_plane import upstream
from pallas_gateway.data_plane.checks import Checks
from pallas_gateway.data_plane.plane import Bounds, DataPlane, Route
from pallas_gateway.health import Reachability
from pallas_gateway.metrics import Metrics
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.database import Database
from pallas_service.access.gate import Gate
from pallas_service.access.static_tokens import StaticTokens
from pallas_service.access.verifier import Verifier
from tests.gateway.confirmation.test_calls import ABOUT, META_MODEL
from tests.gateway.door import Agent
from tests.installed import ROOT
from tests.served import served
from tools.browser import CHROMIUM, load

playwright = pytest.importorskip("playwright.async_api")
axe = pytest.importorskip("axe_playwright_python.async_playwright")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: tools/chromium"),
]

SETTINGS = settings.read(ROOT / "examples" / "05-atlas" / "agents.yaml", {}, Path("/nowhere"))
NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script>"
NO_SPEECH = "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"
SPEECH = """
window.SpeechRecognition = class extends EventTarget {
  start() {
    const result = Object.assign([{ transcript: "How warm is it?" }], { isFinal: true });
    this.dispatchEvent(Object.assign(new Event("result"), { results: [result] }));
    this.dispatchEvent(new Event("end"));
  }
};
"""


class Family(Agent):
    """An agent that works in steps, and waits for a test before the last one."""

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        if params.name == "get_health":
            return t.CallToolResult(content=[], structured_content={"status": "ok", "message": ""})
        await ctx.session.report_progress(1, 2, "home_tools/weather: started")
        await self.more.wait()
        return t.CallToolResult(content=[t.TextContent(type="text", text=NASTY)])


@dataclass
class Shown:
    """The page in a browser, the web as programs see it, and the agent of the family."""

    page: Any
    web: httpx.AsyncClient
    family: Family

    async def delete_milk(self, more: Mapping[str, Any] | None = None, **arguments: object) -> dict[str, Any]:
        """Return what the agent of the family is answered when it deletes a task, perhaps with more than has a use."""
        asked = {"task": "buy-milk", **arguments}
        params = {"name": "delete_task", "arguments": asked, "_meta": {**ABOUT, **(more or {})}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        heads = {
            "authorization": f"Bearer {SETTINGS.tokens['family']}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "delete_task",
        }
        return dict((await self.web.post("/services/home-tools/mcp", json=message, headers=heads)).json())


@asynccontextmanager
async def shown(home: Home, folder: Path, browser: Any, *, script: str = "", **context: Any) -> AsyncIterator[Shown]:
    """Yield the dashboard in a fresh context, which runs `script` before those of the page.

    What it asks of other hosts, or an error of its scripts, fails.
    """
    database = Database(folder / "gateway.db")
    store = Confirmations(database)
    policy = Policy(SETTINGS.gateway, SETTINGS.fleet.agents)
    async with AsyncExitStack() as stack:
        stack.callback(database.close)
        family = Family("family")
        tools = server(home).streamable_http_app(stateless_http=True)
        await stack.enter_async_context(tools.router.lifespan_context(tools))
        agent = await stack.enter_async_context(served(await stack.enter_async_context(family.app())))
        house = await stack.enter_async_context(served(tools))
        client = await stack.enter_async_context(upstream.session())
        routes = {
            "family": Route(f"{agent.base_url}/mcp"),
            "home-tools": Route(
                f"{house.base_url}/mcp", kind="service", callers=SETTINGS.through["home-tools"].callers
            ),
        }
        plane = DataPlane(routes, client, Bounds(1 << 20, 600), checks=Checks(policy, None, Gatekeeper(store)))
        assert SETTINGS.app is not None
        pages = Pages(Metrics(routes), Reachability(), {"name": "x"}, application=files.routes(SETTINGS.app))
        gate = Gate(Verifier(StaticTokens(SETTINGS.tokens)), "http://127.0.0.1")
        app = App(plane, pages, ["127.0.0.1:*"], gate, routed=policy.is_routed, confirmations=Api(store).app())
        web = await stack.enter_async_context(served(app))
        web.timeout = 60
        fresh = await browser.new_context(**context)
        stack.push_async_callback(fresh.close)
        page = await fresh.new_page()
        page.set_default_timeout(120_000)
        wrong: list[str] = []
        base = str(web.base_url)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if "Content Security Policy" in line.text else None)
        page.on("request", lambda asked: None if asked.url.startswith(base) else wrong.append(asked.url))
        if script:
            await page.add_init_script(script)
        await load(page, f"{base}/app")
        yield Shown(page, web, family)
        assert wrong == []


async def come_in(page: Any, caller: str) -> None:
    await page.locator("#token").fill(SETTINGS.tokens[caller])
    await page.locator("#token").press("Enter")
    await expect(page.locator("#door")).to_be_hidden()


def expect(locator: Any) -> Any:
    playwright.expect.set_options(timeout=60_000)
    return playwright.expect(locator)


async def look(page: Any, name: str) -> None:
    """Take a picture where one is asked for, and hold the page to the rules for everybody."""
    if folder := os.environ.get("PALLAS_SCREENSHOTS"):
        await page.screenshot(path=str(Path(folder) / f"dashboard-{name}.png"))
    found = await axe.Axe().run(page)
    assert [(violation["id"], violation["nodes"][0]["html"]) for violation in found.response["violations"]] == []


async def test_a_parent_talks_sees_timers_and_confirms_a_call(home: Home, tmp_path: Path, browser: Any) -> None:
    home.timers.store.add("timer", "tea", home.clock.now() + 1e8)
    async with shown(home, tmp_path, browser, viewport={"width": 1200, "height": 800}) as at:
        page = at.page
        await expect(page.locator("#speak")).to_have_count(1)
        await page.locator("#token").fill("a-wrong-one-0123456789")
        await page.locator("#token").press("Enter")
        await expect(page.locator("#door-reason")).to_contain_text("not taken")
        await come_in(page, "parent")
        await expect(page.locator("#timers")).to_contain_text("tea")
        assert (await at.delete_milk())["error"]["data"]["reason"] == "confirmation_required"
        await page.locator("#message").fill("How is the weather?")
        await page.locator("#message").press("Enter")
        await expect(page.locator(".turn progress")).to_be_visible()
        await expect(page.locator(".lines li")).to_have_text("home_tools/weather: started")
        at.family.more.set()
        await expect(page.locator(".turn .text").last).to_have_text(NASTY)
        await expect(page.locator("#message")).to_be_focused()
        await expect(page.locator("#waiting")).to_contain_text("buy-milk")  # asked for at the end of a turn
        await look(page, "desktop")
        await page.get_by_role("button", name="Approve delete_task").click()
        await expect(page.locator("#banner")).to_contain_text("delete_task is approved")
        await expect(page.locator("#waiting li")).to_have_count(0)
        assert "there is no task" in str((await at.delete_milk())["result"])  # let through, to where there is none
        await page.get_by_role("button", name="Cancel tea").click()
        await expect(page.locator("#timers li")).to_have_count(0)
        stored = await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        assert stored == '[{},{},""]'
        await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        await page.context.set_offline(True)
        await page.reload()
        await expect(page.locator("#door-title")).to_have_text("Who is there?")


async def test_what_a_page_cannot_show_as_it_is_is_approved_after_its_text_alone(
    home: Home, tmp_path: Path, browser: Any
) -> None:
    async with shown(home, tmp_path, browser, script=NO_SPEECH) as at:
        await at.delete_milk(number=2**53 + 1)
        await at.delete_milk(hidden="\u202emilk")
        await at.delete_milk({META_MODEL: "large"}, long="x" * 5000)
        await come_in(at.page, "parent")
        await expect(at.page.locator("#speak")).to_be_hidden()  # this browser cannot listen
        cards = at.page.locator("#waiting li")
        await expect(cards.locator("button.primary:disabled")).to_have_count(3)
        for place, text in enumerate(
            ("9007199254740993", "\\u202emilk", f'"more": {{"_meta": {{"{META_MODEL}": "large"')
        ):
            await cards.nth(place).get_by_role("button", name="Show all of delete_task").click()
            await expect(cards.nth(place).locator("pre")).to_contain_text(text)
            await expect(at.page.locator("button.primary:disabled")).to_have_count(2 - place)
        await look(at.page, "whole")


async def test_a_phone_in_the_dark_listens_and_says_what_is_wrong(home: Home, tmp_path: Path, browser: Any) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark", "has_touch": True, "is_mobile": True}
    home.timers.store.add("reminder", "take out the bins", home.clock.now() + 1e8)
    async with shown(home, tmp_path, browser, script=SPEECH, **phone) as at:
        page = at.page
        await look(page, "door-dark")
        await come_in(page, "phone")
        at.family.more.set()
        await expect(page.locator("#speak")).to_be_visible()
        await page.locator("#speak").click()
        await expect(page.locator(".turn.mine .text")).to_have_text("How warm is it?")
        await expect(page.locator(".turn .text").last).to_have_text(NASTY)
        await expect(page.locator("#timers")).to_contain_text("take out the bins")
        await look(page, "phone-dark")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await page.route("**/agent/mcp", lambda route: route.abort())
        await page.locator("#message").fill("And now?")
        await page.locator("#send").click()
        await expect(page.locator(".turn.failed")).to_have_count(1)
        await expect(page.get_by_role("button", name="Ask again: And now?")).to_be_visible()
        await page.get_by_role("button", name="Forget the token").click()
        await expect(page.locator("#door")).to_be_visible()
        await expect(page.locator("#timers li")).to_have_count(0)
        assert await page.locator(".turn").count() == 0

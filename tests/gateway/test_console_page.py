"""The console in a browser: people talk to agents through the gateway, and see what becomes of it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import mcp_types as t
import pytest

from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_contract.probe.session import META
from pallas_gateway.confirmation.confirmations import Confirmations
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.database import Database
from tests.browser import Lost
from tests.gateway.door import MODERN, PHONE, UI, Agent, opened
from tools.browser import CHROMIUM, INSTEAD, load

playwright = pytest.importorskip("playwright.async_api")
axe = pytest.importorskip("axe_playwright_python.async_playwright")
playwright.expect.set_options(timeout=60_000)  # milliseconds: for a machine that does other work
pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: tools/chromium"),
]

AGENTS = {
    "desk": {"card": "desk.md", "port": 24201, "title": "The Desk", "description": "Counts words, and asks the clerk"},
    "scout": {"card": "scout.md", "port": 24202, "title": "Scout"},
}
FLEET = resolve(Fleet.model_validate({"name": "demo", "agents": AGENTS}))
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script>"


class Desk(Agent):
    """An agent that works in steps; `health` is what it says of itself, `asked` what it was asked."""

    def __init__(self) -> None:
        super().__init__("desk")
        self.health = {"status": "ok", "message": ""}
        self.asked: list[dict[str, Any]] = []

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        names = ("get_health", "desk", "send_message")
        return t.ListToolsResult(tools=[t.Tool(name=name, input_schema={"type": "object"}) for name in names])

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        if params.name == "get_health":
            return t.CallToolResult(content=[], structured_content=self.health)
        self.asked.append(params.arguments or {})
        if self.asked[-1]["message"] == "wait":
            await self.hold(ctx)
        await ctx.session.report_progress(1, None, "desk step 1 (tool)")
        await ctx.session.report_progress(2, None, "clerk/clerk__clerk: started")
        await self.more.wait()
        await ctx.session.report_progress(3, None, "clerk step 1 (tool)")
        await ctx.session.report_progress(4, None, "notes/write: started")
        await ctx.session.report_progress(5, None, "notes/write: failed")
        await ctx.session.report_progress(6, None, "clerk/clerk__clerk: completed")
        return t.CallToolResult(content=[t.TextContent(type="text", text=NASTY)])


@pytest.fixture
def desk() -> Desk:
    return Desk()


@asynccontextmanager
async def shown(
    desk: Desk,
    browser: Any,
    *,
    tokens: dict[str, str] | None = None,
    guarded: Mapping[str, Any] = {},
    lost: Lost | None = None,
    **context: Any,
) -> AsyncIterator[Any]:
    """Yield the console in a fresh context; a request elsewhere fails the test, as does an error that is no refusal.

    `guarded` is more of the gateway under it, `lost` a part of its script that does not come at first.
    """
    async with AsyncExitStack() as stack:
        behind = {"desk": await stack.enter_async_context(desk.app()), "scout": "http://127.0.0.1:1/mcp"}
        door = await stack.enter_async_context(opened(behind, tokens=tokens, fleet=FLEET, **guarded))
        fresh = await browser.new_context(viewport={"width": 1100, "height": 800}, **context)
        page = await fresh.new_page()
        wrong: list[str] = []
        home = str(door.web.base_url)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if "Content Security Policy" in line.text else None)
        page.on("request", lambda asked: None if asked.url.startswith((home, "data:")) else wrong.append(asked.url))
        if lost is not None:
            await page.route("**/console/watch.js", lost)
        await load(page, f"{home}/console")
        try:
            yield page
        finally:
            await fresh.close()
        assert wrong == []


async def shoot(page: Any, name: str) -> None:
    if folder := os.environ.get("PALLAS_SCREENSHOTS"):
        await page.screenshot(path=str(Path(folder) / f"console-{name}.png"))


async def offers_the_desk(page: Any) -> bool:
    """Wait for the agents; False where the browser's own page is there, as the machine's networks changed just then."""
    try:
        await playwright.expect(page.get_by_role("button", name="The Desk")).to_be_visible()
    except AssertionError:
        if not page.url.startswith(INSTEAD):
            raise
        return False
    return True


async def test_it_is_loaded_anew_where_a_part_of_its_script_did_not_come(desk: Desk, browser: Any) -> None:
    offered = False
    while not offered:
        lost = Lost()
        async with shown(desk, browser, lost=lost) as page:
            offered = await offers_the_desk(page)
    assert lost.asked >= 2


async def test_a_turn_from_the_token_to_the_answer(desk: Desk, browser: Any) -> None:
    expect = playwright.expect
    async with shown(desk, browser, tokens={"ui": UI}) as page:
        await page.locator("#token").fill("a-wrong-one-0123456789")
        await page.locator("#token").press("Enter")
        await expect(page.locator("#door-reason")).to_contain_text("not taken")
        await page.locator("#token").fill(UI)
        await page.locator("#token").press("Enter")
        await page.get_by_role("button", name="The Desk").click()
        await expect(page.locator("#banner")).to_be_hidden()
        await page.locator("#images").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": PIXEL})
        await page.locator("#message").fill("How many")
        await page.locator("#message").press("Shift+Enter")
        await page.locator("#message").press_sequentially("words?")
        assert await page.locator("#message").input_value() == "How many\nwords?"
        await page.locator("#message").press("Enter")
        await expect(page.locator(".tree")).to_contain_text("clerk (…)")  # while it is under way
        await expect(page.locator("#send")).to_be_disabled()
        await shoot(page, "under-way")
        desk.more.set()
        await expect(page.locator(".turn pre").last).to_have_text(NASTY)
        await expect(page.locator(".tree > li > ul > li > ul > li.failed")).to_contain_text("notes/write")
        assert await page.locator(".lines li").count() == 6
        await expect(page.locator("#message")).to_be_focused()
        await page.locator("#message").fill("And now?")
        await page.locator("#send").click()
        await expect(page.locator(".turn")).to_have_count(4)
        await expect(page.locator("#send")).to_be_enabled()
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator(".turn")).to_have_count(0)
        await page.locator("#message").fill("A third")
        await page.locator("#send").click()
        await expect(page.locator("#send")).to_be_enabled()
        stored = await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert stored == '[{},{},""]'
    first, second, third = desk.asked
    assert first["images"] == [{"data": base64.b64encode(PIXEL).decode(), "mime_type": "image/png"}]
    assert first["session_id"] == second["session_id"] != third["session_id"]


async def test_what_is_unwell_says_so_and_what_is_away_cannot_be_asked(desk: Desk, browser: Any) -> None:
    expect = playwright.expect
    desk.health = {"status": "degraded", "message": f"Unreachable: {NASTY}"}
    async with shown(desk, browser, color_scheme="dark") as page:
        await page.get_by_role("button", name="The Desk").click()
        await expect(page.locator("#banner")).to_have_text(f"The Desk is degraded: Unreachable: {NASTY}")
        await expect(page.locator("#message")).to_be_enabled()
        await shoot(page, "degraded")
        for agent in ("Scout", "The Desk"):
            desk.health = {"status": "error", "message": "no model"}
            await page.get_by_role("button", name=agent).click()
            await expect(page.locator("#banner")).to_contain_text(f"{agent} is error")
            await expect(page.locator("#message")).to_be_disabled()
        await shoot(page, "error")


async def test_the_end_of_a_turn_opens_no_input_of_what_is_away(desk: Desk, browser: Any) -> None:
    expect = playwright.expect
    async with shown(desk, browser) as page:
        await page.get_by_role("button", name="The Desk").click()
        await page.locator("#message").fill("How many words?")
        await page.locator("#send").click()
        await expect(page.locator("#cancel")).to_be_visible()
        await page.get_by_role("button", name="Scout").click()
        await expect(page.locator("#banner")).to_contain_text("Scout is error")
        # from now on it is not known how Scout is
        await page.route("**/agents/scout/mcp", lambda route: None)
        desk.more.set()
        await expect(page.locator("#cancel")).to_be_hidden()
        assert await page.locator("#message").is_disabled()
        await page.get_by_role("button", name="The Desk").click()
        await expect(page.locator("#message")).to_be_enabled()
        await page.get_by_role("button", name="Scout").click()
        assert await page.locator("#message").is_disabled()


async def test_agents_that_cannot_be_listed_are_said(desk: Desk, browser: Any) -> None:
    async with shown(desk, browser) as page:
        await page.evaluate("location.hash = '#%'")
        await page.reload()
        await page.get_by_role("button", name="The Desk").click()
        await page.route("**/console/agents.json", lambda route: route.abort())
        await page.reload()
        await playwright.expect(page.locator("#banner")).to_contain_text("The agents cannot be listed now")


async def test_a_turn_is_cancelled_at_the_agent(desk: Desk, browser: Any) -> None:
    async with shown(desk, browser) as page:
        await page.get_by_role("button", name="The Desk").click()
        await page.locator("#message").fill("wait")
        await page.locator("#send").click()
        async with asyncio.timeout(60):
            await desk.waiting.wait()
            await page.locator("#cancel").click()
            await desk.cancelled.wait()
        await playwright.expect(page.locator(".turn.failed pre")).to_have_text("cancelled")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 360)])
async def test_everybody_can_use_it(desk: Desk, browser: Any, scheme: str, width: int) -> None:
    desk.more.set()
    desk.health = {"status": "degraded", "message": "Unreachable: clerk"}
    async with shown(desk, browser, color_scheme=scheme) as page:
        await page.set_viewport_size({"width": width, "height": 740})
        await page.get_by_role("button", name="The Desk").click()
        await page.locator("#message").fill("How many words?")
        await page.locator("#send").click()
        await playwright.expect(page.locator("#send")).to_be_enabled()
        await shoot(page, f"{scheme}-{width}")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        found = await axe.Axe().run(page)
        assert [violation["id"] for violation in found.response["violations"]] == []


ABOUT = {
    f"{META}protocolVersion": MODERN,
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": {"name": "test", "version": "1"},
}
GUARDED = Gateway.model_validate(
    {
        "agents": ["desk", "scout"],
        "grants": [
            {"caller": "phone", "agent": "desk", "tools": ["*"]},
            {"caller": "ui", "agent": "desk", "tools": ["*"]},
        ],
        "confirm": [{"agent": "desk", "tools": ["send_message"], "by": ["ui"]}],
        "operators": ["ui"],
    }
)


async def call(home: str, message: str, agent: str = "desk") -> dict[str, Any]:
    """Return the answer to a call of `phone`; `message` is JSON as it is written."""
    params = f'{{"name":"send_message","arguments":{message},"_meta":{json.dumps(ABOUT)}}}'
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
    headers = {
        "authorization": f"Bearer {PHONE}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "send_message",
    }
    async with httpx.AsyncClient(headers=headers, timeout=120, trust_env=False) as web:
        answer: dict[str, Any] = (await web.post(f"{home}/agents/{agent}/mcp", content=body)).json()
        return answer


async def test_a_connection_that_is_lost_without_a_word_is_said_and_given_up(
    desk: Desk, browser: Any, tmp_path: Path
) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    with closing(Database(tmp_path / "gateway.db")) as database:
        guarded = {"policy": Policy(GUARDED, FLEET.agents), "store": Confirmations(database)}
        async with shown(desk, browser, tokens={"ui": UI, "phone": PHONE}, guarded=guarded) as page:
            state = page.locator("#watch-state")
            await page.clock.install()
            await page.route("**/console/calls", hold)
            await page.goto(f"{await page.evaluate('location.origin')}/console#/calls")
            await page.locator("#token").fill(UI)
            await page.locator("#token").press("Enter")
            async with asyncio.timeout(60):
                while not held:
                    await asyncio.sleep(0.02)
            await page.clock.fast_forward(30_000)
            await playwright.expect(state).to_contain_text("may be old: nothing was heard.")
            await page.unroute("**/console/calls")
            await page.clock.fast_forward(30_000)
            await playwright.expect(state).to_be_hidden()


async def test_calls_are_watched_and_confirmed_by_keyboard(desk: Desk, browser: Any, tmp_path: Path) -> None:
    expect = playwright.expect
    with closing(Database(tmp_path / "gateway.db")) as database:
        guarded = {"policy": Policy(GUARDED, FLEET.agents), "store": Confirmations(database)}
        async with shown(desk, browser, tokens={"ui": UI, "phone": PHONE}, guarded=guarded) as page:
            home = await page.evaluate("location.origin")
            asked = await call(home, f'{{"message": "wait", "amount": 12345678901234567890, "note": "{NASTY}\\u202e"}}')
            assert asked["error"]["data"]["reason"] == "confirmation_required"
            await call(home, f'{{"message": "{"x" * 5000}"}}')
            assert (await call(home, "{}", "scout"))["error"]["data"]["reason"] == "unknown_agent"
            await page.goto(f"{home}/console#/calls")
            await page.locator("#token").fill(UI)
            await page.locator("#token").press("Enter")
            first, second = page.locator(".card").first, page.locator(".card").last
            await expect(page.locator(".card")).to_have_count(2)
            await expect(page).to_have_title("(2) demo: console")
            # digit by digit, and what would hide itself as what it is
            await expect(first.locator("pre")).to_contain_text('"amount": 12345678901234567890')
            await expect(first.locator("pre")).to_contain_text(f'"note": "{NASTY}\\u202e"')
            await expect(second.locator(".approve")).to_be_disabled()
            await expect(page.locator("#refused li").first).to_contain_text("unknown_agent")
            await shoot(page, "calls-light-1100")
            await page.emulate_media(color_scheme="dark")
            await page.set_viewport_size({"width": 360, "height": 740})
            await shoot(page, "calls-dark-360")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 360
            found = await axe.Axe().run(page)
            assert [violation["id"] for violation in found.response["violations"]] == []
            await first.locator(".approve").focus()
            await page.keyboard.press("Enter")
            await expect(first.locator(".outcome")).to_contain_text("approved")
            await expect(second).to_be_focused()
            await page.keyboard.press("Enter")  # pressed twice, it decides nothing
            await page.keyboard.press("Tab")
            await expect(second.get_by_role("button", name="Show all")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(second.locator("pre")).to_contain_text("x" * 5000)
            await second.locator(".refuse").focus()
            await page.keyboard.press("Space")
            await expect(second.locator(".outcome")).to_have_text("refused")
            await expect(page.locator("#waiting-title")).to_be_focused()
            await expect(page.locator("#confirmed li")).to_have_count(2)
            await shoot(page, "calls-after")

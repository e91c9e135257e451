"""The caller's own token goes on: to the listed server it is meant for, in that caller's turn, and nowhere else.

An agent `harper` with a server `argos` outside of the fleet, which answers with the token it was shown, and a
sub-agent `research`, which asks for one.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import mcp_types as t
import pytest
from mcp.server import Server
from starlette.responses import RedirectResponse

pytestmark = pytest.mark.slow

UI, BOT = "ui-token-0123456789abcdef", "bot-token-0123456789abcdef"
NOTHING = "nothing"


@pytest.fixture(scope="module")
def model(toolkit: Any) -> Iterator[Any]:
    """`argos` and `research` call the tool of that name, the latter `in` a conversation where one is named; `tools`
    tells the names of the tools it was given; two who `meet` wait for each other, and hear what they said so far."""
    both = threading.Barrier(2)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return {"content": f"It said: {toolkit.said(last)}"}
        text = toolkit.said(last)
        if text.startswith("meet "):
            both.wait(60)
            return {"content": " | ".join(toolkit.said(one) for one in body["messages"] if one["role"] == "user")}
        called = {"argos": "argos__look", "research": "research__research"}.get(text.split(" ")[0])
        if called:
            handle, message = re.fullmatch(r"(?:research )?(?:in (\S+): )?(.*)", text).groups()
            arguments = {"message": message} | ({"session_id": handle} if handle else {})
            return toolkit.tool_call(called, **arguments)
        if text == "tools":
            return {"content": ",".join(sorted(tool["function"]["name"] for tool in body.get("tools", [])))}
        return {"content": text}

    yield from toolkit.serve_model(toolkit.Model(answer, models=["m"]))


class Argos:
    """An MCP server that answers with the token of each call; `shown` are those of who asked for its tools."""

    url = ""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.meta: list[Any] = []
        server: Server[Any] = Server("argos", on_list_tools=self.tools, on_call_tool=self.call)
        self.app = server.streamable_http_app()

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        self.shown.append(ctx.request.headers.get("authorization", NOTHING))
        schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
        named = [t.Tool(name=name, description="x", input_schema=schema) for name in ("look", "hidden")]
        return t.ListToolsResult(tools=named)

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.session.report_progress(1, None, "argos is looking")
        self.meta.append(dict(ctx.meta or {}))
        shown = ctx.request.headers.get("authorization", NOTHING)
        text = f"{(params.arguments or {})['message']} saw {shown}"
        return t.CallToolResult(content=[t.TextContent(type="text", text=text)])


@pytest.fixture(scope="module")
def argos(toolkit: Any) -> Iterator[Argos]:
    made = Argos()
    with toolkit.serving(made.app) as made.url:
        yield made


@pytest.fixture(scope="module")
def elsewhere(argos: Argos, toolkit: Any) -> Iterator[str]:
    """A server that sends every request on to argos."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await RedirectResponse(f"{argos.url}/mcp", 307)(scope, receive, send)

    with toolkit.serving(app) as url:
        yield url


@pytest.fixture(scope="module")
def fleet(
    model: Any, issuer: Any, argos: Any, elsewhere: str, toolkit: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    jwt = {"issuer": issuer.url, "jwks_url": f"{issuer.url}/jwks"}
    servers = {"argos": {"url": f"{argos.url}/mcp"}, "elsewhere": {"url": f"{elsewhere}/mcp"}}
    files = {
        "agents.yaml": {
            "name": "x",
            "registry_port": toolkit.free_port(),
            "public_url": "http://{name}.agents.test",
            "access": {"jwt": jwt, "tokens": {"ui": {"file": "ui"}}},
            "agents": {
                "harper": {
                    "card": "harper.yaml",
                    "port": toolkit.free_port(),
                    "depends_on": ["research"],
                    "access": {
                        "tokens": {"bot": {"file": "bot"}},
                        "forward": ["research", "argos", "elsewhere"],
                    },
                },
                "research": {"card": "research.yaml", "port": toolkit.free_port()},
            },
        },
        "harper.yaml": {
            "type": "agent",
            "name": "harper",
            "instruction": "x",
            "servers": ["research", "argos", "elsewhere"],
            "tools": {"argos": ["lo*"]},
        },
        "research.yaml": {"type": "agent", "name": "research", "instruction": "x"},
        "fastagent.config.yaml": {"default_model": "openai.m", "llm_retries": 0, "mcp": {"servers": servers}},
        "ui": UI,
        "bot": BOT,
        ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
    }
    folder = toolkit.write_files(tmp_path_factory.mktemp("forwarding"), files)
    with toolkit.running(folder, "research", "harper") as started:
        yield started


async def ask(fleet: Any, era: str, token: str, message: str, **options: Any) -> str:
    async with fleet.client("harper", era, token) as made:
        result = await made.call_tool("send_message", {"message": message}, **options)
    (block,) = result.content
    return str(block.text)


def url(name: str) -> str:
    return f"http://{name}.agents.test/mcp"


def token(issuer: Any, fleet: Any, subject: str, *others: str) -> str:
    return str(issuer.token([url("harper"), *others], subject))


async def test_a_token_goes_to_the_server_it_is_also_for(fleet: Any, issuer: Any, argos: Any, era: str) -> None:
    mine = token(issuer, fleet, "alice", f"{argos.url}/mcp")
    assert await ask(fleet, era, mine, "argos one") == f"It said: argos one saw Bearer {mine}"


async def test_a_token_for_others_stays_here(fleet: Any, issuer: Any, era: str) -> None:
    mine = token(issuer, fleet, "alice", "https://argos.example/mcp", url("research"))
    assert await ask(fleet, era, mine, "argos one") == f"It said: argos one saw {NOTHING}"
    assert await ask(fleet, era, UI, "argos one") == f"It said: argos one saw {NOTHING}"


async def test_a_sub_agent_takes_the_callers_token(fleet: Any, issuer: Any, era: str) -> None:
    both = token(issuer, fleet, "alice", url("research"))
    assert await ask(fleet, era, both, "research one") == "It said: one"
    assert await ask(fleet, era, UI, "research one") == "It said: one"


@pytest.mark.parametrize("who", ["alone", "bot"])
async def test_a_sub_agent_that_does_not_take_it_is_not_shown_it(fleet: Any, issuer: Any, era: str, who: str) -> None:
    """harper has no token of its own for research, so it lacks the tool; it does not fall back on anything else."""
    mine = BOT if who == "bot" else token(issuer, fleet, "alice")
    assert await ask(fleet, era, mine, "tools") == "argos__look"
    assert '"event":"token_refused"' not in fleet.log("research").read_text()


async def test_tokens_of_concurrent_callers_are_never_mixed(fleet: Any, issuer: Any, argos: Any, era: str) -> None:
    """And who comes after them, without a token for argos, gets none of theirs."""
    tokens = {name: token(issuer, fleet, name, f"{argos.url}/mcp") for name in ("alice", "bob", "carol")}

    async def talk(name: str) -> list[str]:
        async with fleet.client("harper", era, tokens[name]) as made:
            results = [await made.call_tool("send_message", {"message": f"argos {name} {i}"}) for i in range(3)]
        return [str(result.content[0].text) for result in results]

    answers = dict(zip(tokens, await asyncio.gather(*map(talk, tokens)), strict=True))
    for name, mine in tokens.items():
        assert answers[name] == [f"It said: argos {name} {i} saw Bearer {mine}" for i in range(3)]
    after = await asyncio.gather(*(ask(fleet, era, UI, f"argos {i}") for i in range(4)))
    assert after == [f"It said: argos {i} saw {NOTHING}" for i in range(4)]


@pytest.mark.parametrize("eras", [("2026-07-28", "2026-07-28"), ("legacy", "legacy"), ("2026-07-28", "legacy")])
async def test_two_users_at_once_are_each_themselves_to_a_sub_agent(
    fleet: Any, issuer: Any, eras: tuple[str, str]
) -> None:
    """research is asked by both at a time, in conversations of one name, which belong to the caller it has verified."""
    handle = f"both-{'-'.join(eras)}"
    before = len(calls(fleet, "research"))

    async def talk(name: str, era: str) -> list[str]:
        async with fleet.client("harper", era, token(issuer, fleet, name, url("research"))) as made:
            asked = [{"message": f"research in {handle}: meet {name} {i}"} for i in range(3)]
            results = [await made.call_tool("send_message", arguments) for arguments in asked]
        return [str(result.content[0].text) for result in results]

    names = ("alice", "bob")
    for name, heard in zip(names, await asyncio.gather(*map(talk, names, eras)), strict=True):
        said = [f"meet {name} {i}" for i in range(3)]
        assert heard == [f"It said: {' | '.join(said[: i + 1])}" for i in range(3)]
    callers = [line["caller"] for line in calls(fleet, "research")[before:]]
    assert sorted(callers) == ["alice"] * 3 + ["bob"] * 3


def calls(fleet: Any, name: str) -> list[dict[str, Any]]:
    # Warnings about agents.yaml come before the log begins, as text.
    lines = [json.loads(line) for line in fleet.log(name).read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "call"]


async def test_a_token_does_not_follow_a_redirect(fleet: Any, issuer: Any, argos: Any, elsewhere: str) -> None:
    argos.shown.clear()
    mine = token(issuer, fleet, "alice", f"{elsewhere}/mcp")
    assert await ask(fleet, "2026-07-28", mine, "tools") == "argos__look"
    assert argos.shown
    assert not any(mine in shown for shown in argos.shown)


async def test_progress_and_the_task_go_along(fleet: Any, issuer: Any, argos: Any, era: str) -> None:
    heard: list[tuple[float, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))

    argos.meta.clear()
    mine = token(issuer, fleet, "alice", f"{argos.url}/mcp")
    await ask(fleet, era, mine, "argos one", progress_callback=hear)
    lines = [message for _, message in heard if message.startswith("argos")]
    assert lines == ["argos/look: started", "argos is looking", "argos/look: completed"]
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})
    (meta,) = argos.meta
    assert meta["io.pallas-kit/path"] == "local.x/harper"
    assert not any(mine in str(value) for value in meta.values())


async def test_no_token_is_in_a_log(fleet: Any, issuer: Any) -> None:
    logs = fleet.log("harper").read_text() + fleet.log("research").read_text()
    assert not any(secret in logs for secret in (UI, BOT, issuer.token("x").split(".")[0]))

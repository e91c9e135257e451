"""What Daedalus makes of a registry's document, a health answer and progress, as seed 000 words it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from pallas_testing.daedalus import Blocked, Daedalus, NotARegistry, Progress, StatusLine
from pallas_testing.daedalus.chat import NoAnswer, choose
from pallas_testing.daedalus.client import INTERVAL, interval
from pallas_testing.daedalus.health import Health, check, parse
from pallas_testing.daedalus.registry import agent, fetch

RESEARCH = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    "name": "ca.helu.ouranos/pallas-research",
    "title": "Research Agent",
    "description": "Web search via Argos and knowledge graph via Neo4j",
    "version": "1.0.0",
    "icons": [{"src": "https://daedalus.ouranos.helu.ca/icons/research.svg", "sizes": "any"}],
    "remotes": [{"type": "streamable-http", "url": "http://puck.incus:23031/mcp"}],
    "capabilities": {"model": "qwen3-8b-q5", "vision": False, "context_window": 200000, "max_output_tokens": 32000},
}
"""The seed's own example (section 1)."""


def test_an_entry_becomes_an_agent() -> None:
    found = agent({**RESEARCH, "icons": [*RESEARCH["icons"], {"src": "/second.svg"}]})
    assert found is not None
    assert (found.server_id, found.title, found.url) == (
        "pallas-research",
        "Research Agent",
        "http://puck.incus:23031/mcp",
    )
    assert found.icon == "https://daedalus.ouranos.helu.ca/icons/research.svg"
    assert found.capabilities["context_window"] == 200000


def test_what_is_optional_may_be_left_out_and_the_title_falls_back_to_the_name() -> None:
    found = agent({key: RESEARCH[key] for key in ("name", "remotes")})
    assert found is not None
    assert (found.title, found.icon, found.description) == (RESEARCH["name"], "", "")


def test_only_a_streamable_http_remote_can_be_connected_to() -> None:
    other = {"type": "sse", "url": "http://puck.incus/sse"}
    assert agent({**RESEARCH, "remotes": [other]}) is None
    found = agent({**RESEARCH, "remotes": [other, *RESEARCH["remotes"]]})
    assert found is not None
    assert found.url == "http://puck.incus:23031/mcp"


@pytest.mark.parametrize(
    ("text", "health", "badge", "banner", "blocks"),
    [
        ('{"status": "ok", "timestamp": "2026-03-12T15:42:00Z"}', "ok", "green", "", False),
        ('{"status": "degraded", "message": "Neo4j slow"}', "degraded", "yellow", "Neo4j slow", False),
        ('{"status": "error", "message": "Argos unreachable"}', "error", "red", "", True),
        ('{"status": "fine"}', "error", "red", "", True),
        ("[]", "error", "red", "", True),
        ("I am well", "error", "red", "", True),
        ('{"status": []}', "error", "red", "", True),
        ("[" * 200_000, "error", "red", "", True),
    ],
)
def test_a_health_answer(text: str, health: str, badge: str, banner: str, blocks: bool) -> None:
    found = parse(text)
    assert (found.status, found.badge, found.banner, found.blocks_chat) == (health, badge, banner, blocks)
    assert found.status == "ok" or found.message


async def test_a_check_that_fails_entirely_is_an_error() -> None:
    found = await check("http://127.0.0.1:9/mcp", timeout=5)
    assert found.status == "error"
    assert found.message.startswith("health check failed: ")


def test_the_interval_is_60_seconds_unless_the_environment_says_otherwise() -> None:
    assert interval({}) == INTERVAL == 60
    assert interval({"DAEDALUS_MCP_HEALTH_INTERVAL": "5"}) == 5
    for wrong in ("0", "-1", "nan", "inf", "soon"):
        with pytest.raises(ValueError, match=r"DAEDALUS_MCP_HEALTH_INTERVAL|could not convert"):
            interval({"DAEDALUS_MCP_HEALTH_INTERVAL": wrong})


def test_each_notification_replaces_the_line_and_the_answer_clears_it() -> None:
    shown: list[Progress | None] = []
    line = StatusLine(shown.append)
    started = Progress(0, None, "research/research__research: started")
    done = Progress(1, 1, "research/research__research: completed")
    for each in (started, done, None):
        line.show(each)
        assert line.shown is each
    assert shown == [started, done, None]
    assert (started.indeterminate, started.completed) == (True, False)
    assert (done.indeterminate, done.completed) == (False, True)


def test_the_tool_to_chat_with() -> None:
    assert choose("tech-research", ["get_health", "send_message", "tech_research"]) == "tech_research"
    assert choose("harper", ["get_health", "send_message"]) == "send_message"
    with pytest.raises(NoAnswer):
        choose("harper", ["get_health"])


@contextlib.asynccontextmanager
async def answering(body: bytes, kind: str = "application/json", status: int = 200) -> AsyncIterator[str]:
    """The URL of a server with this document at the registry's path."""

    async def document(_request) -> Response:
        return Response(body, status, media_type=kind)

    app = Starlette(routes=[Route("/.well-known/mcp/server.json", document)])
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off", ws="none"))
    config = server.config
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await server.shutdown()


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"<html>", "text/html", 200),
        (b"{}", "application/json", 200),
        (b"[]", "application/json", 200),
        (b'{"servers": [{"server": {"name": "a/b"}}]}', "application/json", 200),
        (b'{"servers": [{"server": 7}]}', "application/json", 200),
        (b"{", "application/json", 200),
        (b'{"servers": []}', "application/json", 404),
    ],
)
async def test_what_is_no_registry_is_said(body: bytes, kind: str, status: int) -> None:
    async with answering(body, kind, status) as url:
        with pytest.raises(NotARegistry, match=url):
            await fetch(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nowhere", "http://[", ""])
async def test_where_nobody_answers(url: str) -> None:
    with pytest.raises(NotARegistry):
        await fetch(url)


async def test_unhealthy_agents_are_attached_blocked_and_forgotten_when_detached() -> None:
    dead = {**RESEARCH, "remotes": [{"type": "streamable-http", "url": "http://127.0.0.1:9/mcp"}]}
    async with answering(json.dumps({"servers": [{"server": dead}]}).encode()) as url:
        daedalus = Daedalus(interval=1)
        instance = await daedalus.register(url)
        assert daedalus.metrics().count(b"daedalus_agent_health{") == 0, "only connected agents are asked"
        (made,) = await daedalus.attach("home", instance.name)
        assert daedalus.health(made).status == "error"
        line = f'daedalus_agent_health{{agent="pallas-research",instance="{instance.name}"}} 0.0'
        assert line in daedalus.metrics().decode()
        with pytest.raises(Blocked):
            await daedalus.chat("home", "pallas-research", "hello")
        daedalus.detach("home", instance.name)
        assert line not in daedalus.metrics().decode()
        with pytest.raises(KeyError):
            daedalus.connection("home", "pallas-research")
    assert Health("ok").banner == ""

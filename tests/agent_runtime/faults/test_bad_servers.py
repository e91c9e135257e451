"""Servers that are no agents and misbehave, at the start and later: what the agent says of them, and how it goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
from mcp import Client

from pallas_contract import names

pytestmark = [pytest.mark.slow, pytest.mark.waits]

MODERN, LEGACY = ERAS = ["2026-07-28", "legacy"]
MOODS = ["silent", "headers", "drip"]
CLOSED = "closed"
"""The server at whose port nobody listens."""
BOUND = 3
"""Seconds that the project gives a server to answer a call."""


class Scout:
    """An agent with a server per mood, each of that name, and one that is not there."""

    def __init__(self, toolkit: Any, folder: Any, wires: dict[str, Any], closed: int) -> None:
        self._until, self.wires = toolkit.until, wires
        self.listen: Callable[[], object]
        """Have somebody listen at the closed port, from now on."""
        ports = {name: wire.port for name, wire in wires.items()} | {CLOSED: closed}
        servers = {
            name: {"url": f"http://127.0.0.1:{port}/mcp", "read_timeout_seconds": BOUND} for name, port in ports.items()
        }
        card = f"---\ntype: agent\nname: scout\nservers: [{', '.join(ports)}]\n---\nYou are Scout.\n"
        self.files: dict[str, Any] = {
            "agents.yaml": {
                "name": "b",
                "namespace": "x",
                "registry_port": toolkit.free_port(),
                "agents": {"scout": {"card": "scout.md", "port": toolkit.free_port()}},
            },
            "scout.md": card,
            "fastagent.config.yaml": {"default_model": "openai.m", "mcp": {"servers": servers}},
        }
        self.agents = toolkit.Agents(folder, {"PALLAS_CONNECT_TIMEOUT": "5"}, toolkit.warm_parent)

    async def well(self) -> None:
        """All servers are good, and that is known."""
        for wire in self.wires.values():
            wire.turn("")
        self.listen()
        await self.until("ok")

    def page(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.agents.get("scout", "/healthz")[1])
        return found

    async def until(self, status: str, message: str | None = None) -> dict[str, Any]:
        """The page once it says so."""

        def look() -> dict[str, Any] | None:
            page = self.page()
            return page if (page["status"], page.get("message")) == (status, message) else None

        found: dict[str, Any] = await asyncio.to_thread(self._until, look)
        return found

    async def just_probed(self) -> None:
        """A round of probes has ended, and the next one is seconds away."""
        before = self.page()["timestamp"]
        await asyncio.to_thread(self._until, lambda: self.page()["timestamp"] != before or None)

    async def ask(self, era: str, message: str, **meta: str) -> tuple[str, bool, list[str | None]]:
        """The answer, whether it is an error, and the lines of progress."""
        lines: list[str | None] = []

        async def hear(progress: float, total: float | None, text: str | None) -> None:
            lines.append(text)

        carried: Any = {getattr(names, key): value for key, value in meta.items()} or None
        async with Client(self.agents.url("scout"), mode=era) as client:
            result = await client.call_tool("scout", {"message": message}, progress_callback=hear, meta=carried)
        (block,) = result.content
        return block.text, result.is_error, lines

    async def search(self, era: str, server: str) -> tuple[str, bool, list[str | None]]:
        """The answer with a server that is well, in another turn where one did not connect it in its share of 5 s.

        The agent logs that; where it is without the server for any other reason, the answer is the first one.
        """
        async with asyncio.timeout(60):
            while True:
                before = self._late(server)
                answer = await self.ask(era, f"use {server}__search x")
                if "is not available" not in answer[0] or self._late(server) == before:
                    return answer

    def _late(self, server: str) -> int:
        """How often the agent had no time left to connect it."""
        lines = [json.loads(line) for line in self.agents.log("scout").read_text().splitlines()]
        late = {"event": "server_not_attached", "server": server, "error": "TimeoutError"}
        return sum(late.items() <= line.items() for line in lines)


@pytest.fixture(scope="module")
def scout(toolkit: Any, parts: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scout]:
    """Started while all its servers are bad."""
    with ExitStack() as stack:
        argos = stack.enter_context(parts.argos_serving())
        wires = {mood: stack.enter_context(parts.Wire(argos.port).open()) for mood in MOODS}
        for mood, wire in wires.items():
            wire.turn(mood)
        closed = toolkit.free_port()
        made = Scout(toolkit, tmp_path_factory.mktemp("bad"), wires, closed)
        model = stack.enter_context(parts.modelling(toolkit))
        made.files[".env"] = f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n"
        toolkit.write_files(made.agents.folder, made.files)
        stack.callback(made.agents.close)
        made.agents.start("scout")
        made.agents.wait("scout")
        made.listen = cache(lambda: stack.enter_context(parts.Wire(argos.port).open(closed)))
        yield made


async def test_no_server_stops_the_start_and_each_comes_back(scout: Scout) -> None:
    page = await scout.until("degraded", "Unreachable: closed, drip, headers, silent")
    assert {name: seen["reason"] for name, seen in page["downstream"].items()} == {
        CLOSED: "connection refused",
        **dict.fromkeys(MOODS, "no answer in 3 s"),
    }
    for era in ERAS:
        assert (await scout.ask(era, "hello"))[:2] == ("hello", False)
        for server in (CLOSED, *MOODS):
            text, _, lines = await scout.ask(era, f"use {server}__search x")
            assert text.startswith(f"got Tool '{server}__search' is not available.")
            assert not [line for line in lines if line and line.startswith(server)]
    await scout.well()
    for era in ERAS:
        for server in (CLOSED, *MOODS):
            text, failed, lines = await scout.search(era, server)
            assert (text, failed) == ("got found x", False)
            assert lines[2:4] == [f"{server}/search: started", f"{server}/search: completed"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mood", MOODS)
async def test_a_server_that_goes_bad_fails_its_calls_and_no_other(scout: Scout, mood: str, era: str) -> None:
    """The connection was there before; a call ends with the server's bound, or with the caller's deadline if sooner."""
    await scout.well()
    other = next(name for name in reversed(MOODS) if name != mood)
    assert (await scout.ask(era, f"use {mood}__search x"))[0] == "got found x"
    await scout.just_probed()
    scout.wires[mood].turn(mood)
    text, _, lines = await scout.ask(era, f"use {mood}__search x")
    assert text.startswith(f"got Failed to call_tool 'search' on server '{mood}': ")
    assert f"{mood}/search: failed" in lines
    assert (await scout.ask(era, "hello"))[:2] == ("hello", False)
    # well once more, with a round of probes seconds away: on a busy machine one has come in between
    await scout.well()
    assert (await scout.ask(era, f"use {mood}__search x"))[0] == "got found x"
    await scout.just_probed()
    scout.wires[mood].turn(mood)
    text, _, _ = await scout.ask(era, f"use {mood}__search x", META_SECONDS="1")
    assert text == "no answer before the task's deadline: x/scout" or f"'{mood}'" in text
    # an instance that was cancelled is replaced, and the new one connects every server again
    assert (await scout.ask(era, f"use {other}__search x"))[0] == "got found x"
    page = await scout.until("degraded", f"Unreachable: {mood}")
    assert page["downstream"][mood]["reason"] == "no answer in 3 s"
    scout.wires[mood].turn("")
    await scout.until("ok")
    assert (await scout.ask(era, f"use {mood}__search x"))[0] == "got found x"


async def test_servers_that_hang_together_hold_a_turn_up_for_one_deadline(scout: Scout) -> None:
    """A new instance connects every server before a probe has noticed; two that hang do not have 5 s each."""
    await scout.well()
    await scout.just_probed()
    for mood in ("drip", "headers"):
        scout.wires[mood].turn("silent")
    text, failed, _ = await scout.ask(MODERN, "use headers__search x", META_SECONDS="0.5")
    assert (text, failed) == ("no answer before the task's deadline: x/scout", True)
    text, failed, _ = await scout.ask(MODERN, "use silent__search x", META_SECONDS="8")
    assert (text, failed) == ("got found x", False)

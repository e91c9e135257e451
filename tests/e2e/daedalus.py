"""Seed 000 section 3, sentence by sentence, with Daedalus itself against a running examples/02-pallas.

Each function is one sentence or two that belong together; `SENTENCES` are all of them. What runs the fleet is the
caller's business.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from tests.documentation import blocks
from tests.ports import free_port

from . import scenario

INTERVAL = 1.0
WITHIN = 120.0
"""Seconds for what Daedalus has to notice: a frozen agent costs a check its whole timeout."""


@dataclass
class Daedalus:
    """A running Daedalus and the fleet it is pointed at."""

    client: httpx.AsyncClient
    registry: str
    fleet: scenario.Fleet

    @property
    def instance(self) -> str:
        return self.registry.removeprefix("http://")

    async def register(self) -> list[dict[str, Any]]:
        reply = await self.client.post("/instances", json={"registry_url": self.registry})
        assert reply.status_code == 201, reply.text
        return reply.json()["agents"]

    async def attach(self, workspace: str) -> None:
        await self.register()
        reply = await self.client.put(f"/workspaces/{workspace}/instances/{self.instance}")
        assert reply.status_code == 200, reply.text

    async def agents(self, workspace: str) -> dict[str, dict[str, Any]]:
        found = (await self.client.get(f"/workspaces/{workspace}/agents")).json()
        return {each["server_id"]: each for each in found}

    async def until(self, workspace: str, agent: str, status: str) -> dict[str, Any]:
        """The agent as the status API shows it, once it is in that state."""
        seen: dict[str, Any] = {}
        try:
            async with asyncio.timeout(WITHIN):
                while (seen := (await self.agents(workspace))[agent])["status"] != status:
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"{agent} is not {status}: {seen}") from None
        return seen

    async def gauge(self, agent: str) -> float:
        text = (await self.client.get("/metrics")).text
        name = f'daedalus_agent_health{{agent="{agent}",instance="{self.instance}"}} '
        return float(text.partition(name)[2].split("\n")[0])

    async def chat(
        self, agent: str, message: str, seen: Callable[[str], None] = lambda _: None
    ) -> tuple[list[dict[str, Any]], str]:
        """The status lines on the way and the answer; `seen` is told each line as it is shown."""
        lines: list[dict[str, Any]] = []
        path = f"/workspaces/home/agents/{agent}/chat"
        async with self.client.stream("POST", path, json={"message": message}) as reply:
            assert reply.status_code == 200, await reply.aread()
            event = ""
            async for line in reply.aiter_lines():
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                    if event == "answer":
                        return lines, data["text"]
                    assert event == "status", data
                    lines.append(data)
                    seen(data["message"])
        raise AssertionError("the stream ended without an answer")


@asynccontextmanager
async def running(registry: str, fleet: scenario.Fleet) -> AsyncIterator[Daedalus]:
    """Daedalus as a program of its own, polling every second."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "pallas_testing.daedalus", "--port", str(port)),
        env={"PATH": os.environ["PATH"], "DAEDALUS_MCP_HEALTH_INTERVAL": str(INTERVAL)},
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False) as client:
            async with asyncio.timeout(WITHIN):
                while True:
                    try:
                        await client.get("/instances")
                        break
                    except httpx.TransportError:
                        assert process.returncode is None
                        await asyncio.sleep(0.1)
            yield Daedalus(client, registry, fleet)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def an_instance_is_registered_by_its_url_and_its_agents_are_shown(daedalus: Daedalus) -> None:
    """Registration flow: 1 to 4."""
    found = {each["server_id"]: each for each in await daedalus.register()}
    assert set(found) == set(scenario.ALL_OK)
    research = found["tech-research"]
    assert (research["title"], research["url"].rpartition("/")[2]) == ("Tech Research Agent", "mcp")
    assert research["capabilities"]["context_window"] == 200000
    (instance,) = (await daedalus.client.get("/instances")).json()
    assert instance["name"] == daedalus.instance
    wrong = await daedalus.client.post("/instances", json={"registry_url": research["url"]})
    assert wrong.status_code == 422


async def the_requests_of_the_page_are_answered(daedalus: Daedalus) -> None:
    (block,) = blocks.of("daedalus-asked")
    await daedalus.attach("home")
    script = block.text.replace("http://127.0.0.1:8000", str(daedalus.client.base_url).rstrip("/"))
    command = ("sh", "-e", "-c", script)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0
    assert '"badge"' in printed
    assert "Engineering, asking from " in printed
    assert "daedalus_agent_health{" in printed


async def attaching_connects_a_workspace_to_every_agent_and_detaching_to_none(daedalus: Daedalus) -> None:
    """Workspace attachment: 1 to 4."""
    await daedalus.attach("other")
    assert set(await daedalus.agents("other")) == set(scenario.ALL_OK)
    reply = await daedalus.client.delete(f"/workspaces/other/instances/{daedalus.instance}")
    assert reply.status_code == 204
    assert await daedalus.agents("other") == {}
    unknown = await daedalus.client.put("/workspaces/other/instances/nowhere:1")
    assert unknown.status_code == 404


async def health_is_polled_cached_and_exposed_as_status_and_gauge(daedalus: Daedalus) -> None:
    """Health polling: interval, status API, gauge 1.0."""
    await daedalus.attach("home")
    for agent in scenario.ALL_OK:
        shown = await daedalus.until("home", agent, "ok")
        assert (shown["badge"], shown["banner"], shown["input"]) == ("green", "", True)
        assert await daedalus.gauge(agent) == 1.0


async def progress_is_one_line_that_is_replaced_until_the_answer(daedalus: Daedalus) -> None:
    """Section 4, Daedalus Requirements: the token is sent, the lines have the patterns, spinners have no total."""
    await daedalus.attach("home")
    await daedalus.until("home", "harper", "ok")
    lines, text = await daedalus.chat("harper", scenario.QUESTION)
    assert "Research, asking from " in text
    messages = [line["message"] for line in lines]
    assert {"research/research__research: started", "research/research__research: completed"} <= set(messages)
    assert "harper step 1 (llm)" in messages
    assert {line["spinner"] for line in lines if line["message"].startswith("harper step")} == {True}
    assert False in {line["spinner"] for line in lines if line["message"].endswith(": completed")}


async def an_agent_in_error_blocks_chat_and_a_degraded_one_warns(daedalus: Daedalus) -> None:
    """Chat blocking, and health that cannot be had; tech_research hangs, so research can do less."""
    await daedalus.attach("home")
    await daedalus.until("home", "research", "ok")
    daedalus.fleet.freeze("tech_research")
    try:
        shown = await daedalus.until("home", "tech-research", "error")
        assert (shown["badge"], shown["input"]) == ("red", False)
        assert await daedalus.gauge("tech-research") == 0.0
        reply = await daedalus.client.post("/workspaces/home/agents/tech-research/chat", json={"message": "hello"})
        assert reply.status_code == 503
        assert reply.json()["detail"] == shown["message"]

        shown = await daedalus.until("home", "research", "degraded")
        assert (shown["badge"], shown["input"]) == ("yellow", True)
        assert "tech_research" in shown["banner"]
        assert await daedalus.gauge("research") == 0.5

        await daedalus.attach("late")
        assert set(await daedalus.agents("late")) == set(scenario.ALL_OK), "health only blocks sending messages"

        asked = asyncio.Event()
        chat = asyncio.create_task(daedalus.chat("research", scenario.QUESTION, lambda _: asked.set()))
        async with asyncio.timeout(WITHIN):
            await asked.wait()
    finally:
        daedalus.fleet.thaw("tech_research")
    _, text = await chat
    assert "Research, asking from " in text
    for agent in scenario.ALL_OK:
        await daedalus.until("home", agent, "ok")
        assert await daedalus.gauge(agent) == 1.0


async def the_example_of_its_page_gets_an_answer(daedalus: Daedalus) -> None:
    """Daedalus as a library, as docs/daedalus.md shows it."""
    (example,) = blocks.of("daedalus")
    text = example.text.replace("http://127.0.0.1:24100", daedalus.registry)
    names: dict[str, Any] = {}
    await eval(compile(text, str(example), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    assert "Research, asking from " in names["text"]


Sentence = Callable[[Daedalus], Awaitable[None]]
SENTENCES: list[Sentence] = [
    an_instance_is_registered_by_its_url_and_its_agents_are_shown,
    attaching_connects_a_workspace_to_every_agent_and_detaching_to_none,
    health_is_polled_cached_and_exposed_as_status_and_gauge,
    progress_is_one_line_that_is_replaced_until_the_answer,
    an_agent_in_error_blocks_chat_and_a_degraded_one_warns,
    the_example_of_its_page_gets_an_answer,
    the_requests_of_the_page_are_answered,
]

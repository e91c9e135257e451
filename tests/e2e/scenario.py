"""What must be true of a running examples/02-pallas, whatever runs it: processes, compose or Kubernetes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mcp import Client

from pallas_contract.documents import server_json
from pallas_contract.probe import http_client

ALL_OK = {"harper": "ok", "research": "ok", "tech-research": "ok", "engineering": "ok"}
ERAS = ("2026-07-28", "legacy")
QUESTION = "Who looks after the repositories?"

DELEGATION = [
    "research/research__research",
    "engineering/engineering__engineering",
    "tech_research/tech_research__tech_research",
    "argos/search_web",
    "neo4j_cypher/read_graph",
    "kernos/run",
    "gitea/list_repos",
]
"""The calls behind one answer of harper: its own, and those its sub-agents make and pass on as progress."""

STEPS = [f"{agent} step {step}" for agent in ("harper", "research", "engineering") for step in ("1 (llm)", "2 (tool)")]
STEPS.append("tech_research step 1 (llm)")
"""The steps behind it of each agent: of harper, of those it asks, and of the one that research asks."""


class Fleet(Protocol):
    """What can be done to the agents of a running fleet, by their names in agents.yaml."""

    def kill(self, agent: str) -> None:
        """End it as a crash would (SIGKILL)."""

    def start(self, agent: str) -> None:
        """Make it run again; nothing to do where somebody restarts it anyway."""

    def freeze(self, agent: str) -> None:
        """Let it run no further, with its port still open."""

    def thaw(self, agent: str) -> None:
        """Let a frozen one run on."""


@dataclass(frozen=True)
class Answer:
    """What harper said, and the progress on the way, as (value, total, message)."""

    text: str
    progress: list[tuple[float, float | None, str]]

    @property
    def messages(self) -> list[str]:
        return [message for _, _, message in self.progress]


async def _entries(registry_url: str) -> dict[str, dict[str, Any]] | None:
    """Ask the registry once for its entries, by the last part of their names; None where it does not answer."""
    try:
        async with asyncio.timeout(3):
            reply = await http_client.request("GET", f"{registry_url}/.well-known/mcp/server.json")
    except (http_client.Unreachable, TimeoutError):
        return None
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("application/json")
    return {entry["server"]["name"].partition("/")[2]: entry for entry in json.loads(reply.body)["servers"]}


async def catalogue(registry_url: str) -> dict[str, dict[str, Any]]:
    """The registry's entries by the last part of their names, as soon as it answers."""
    async with asyncio.timeout(60):
        while (entries := await _entries(registry_url)) is None:
            await asyncio.sleep(0.1)
    return entries


def _states(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {slug: entry["_meta"][server_json.HEALTH_META]["status"] for slug, entry in entries.items()}


async def states(registry_url: str) -> dict[str, str]:
    """Slug -> state, as the registry last found it."""
    return _states(await catalogue(registry_url))


@asynccontextmanager
async def asking(registry_url: str) -> AsyncIterator[list[str]]:
    """Ask for the catalogue again and again, each time by a new connection; yields the answers so far."""
    answers: list[str] = []

    async def ask() -> None:
        while True:
            try:
                async with asyncio.timeout(3):
                    reply = await http_client.request("GET", f"{registry_url}/.well-known/mcp/server.json")
                answers.append(str(reply.status))
            except (http_client.Unreachable, TimeoutError) as error:
                answers.append(repr(error))
            await asyncio.sleep(0.05)

    task = asyncio.create_task(ask())
    try:
        yield answers
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_listed(registry_url: str, slugs: Collection[str], *, within: float) -> None:
    """Wait until the registry lists these agents and no other."""
    listed: Collection[str] = ()
    try:
        async with asyncio.timeout(within):
            while set(listed) != set(slugs):
                await asyncio.sleep(0.1)
                listed = await catalogue(registry_url)
    except TimeoutError:
        raise AssertionError(f"after {within:g} s the registry lists {sorted(listed)}, not {sorted(slugs)}") from None


async def until_states(
    registry_url: str, wanted: Mapping[str, str], *, within: float, alive: Callable[[], object] = lambda: None
) -> None:
    """Wait until the registry shows at least `wanted`; `alive` may fail the test early."""
    seen: dict[str, str] = {}
    try:
        async with asyncio.timeout(within):
            while not wanted.items() <= seen.items():
                alive()
                await asyncio.sleep(0.1)
                seen = _states(await _entries(registry_url) or {})
    except TimeoutError:
        raise AssertionError(f"after {within:g} s the registry shows {seen}, not {dict(wanted)}") from None


async def until_probed(
    registry_url: str, agent: str, addresses: Callable[[], Collection[str]], *, within: float
) -> None:
    """Wait until the registry knows exactly the replicas at `addresses`, asks each now, and each is well.

    A state alone may be that of replicas which have gone since, or of only some of those that are there. `agent` is the
    name in agents.yaml.
    """
    targets: set[str] = set()
    answer = ""
    try:
        async with asyncio.timeout(within):
            while True:
                targets = await replicas(registry_url, agent)
                if targets == set(addresses()):
                    reply = await http_client.request("POST", f"{registry_url}/agents/{agent}/recheck")
                    answer = reply.body.decode()
                    if reply.status == 200 and json.loads(answer)["status"] == "ok":
                        return
                await asyncio.sleep(0.2)
    except TimeoutError:
        shown = f"{targets}, not {set(addresses())}; its last answer: {answer}"
        raise AssertionError(f"after {within:g} s the registry knows {agent} at {shown}") from None


async def replicas(registry_url: str, agent: str) -> set[str]:
    """Return the addresses of an agent's replicas that the registry knows, without their ports."""
    reply = await http_client.request("GET", f"{registry_url}/prometheus/targets")
    groups = {group["labels"]["agent"]: group["targets"] for group in json.loads(reply.body)}
    return {target.rpartition(":")[0] for target in groups.get(agent, [])}


async def ask(agent_url: str, tool: str, message: str, era: str) -> Answer:
    """Call an agent as a client of `era` does, with progress."""
    progress: list[tuple[float, float | None, str]] = []

    async def keep(value: float, total: float | None, text: str | None) -> None:
        progress.append((value, total, text or ""))

    async with Client(agent_url, mode=era) as client:
        result = await client.call_tool(tool, {"message": message}, progress_callback=keep)
    text = "\n".join(getattr(block, "text", "") for block in result.content)
    assert not result.is_error, text
    return Answer(text, progress)


async def harper_delegates(agent_url: str, era: str) -> Answer:
    """harper's answer quotes its sub-agents and their tools, and its progress shows every call behind it."""
    answer = await ask(agent_url, "harper", QUESTION, era)
    for colleague in ("Research", "Tech Research", "Engineering"):
        assert f"{colleague}, asking from " in answer.text, answer.text
    for server in ("argos", "neo4j_cypher", "kernos", "gitea"):
        assert f"({server} on " in answer.text, answer.text
    for call in DELEGATION:
        assert f"{call}: started" in answer.messages, answer.messages
        assert f"{call}: completed" in answer.messages, answer.messages
    for step in STEPS:
        assert step in answer.messages, answer.messages
    values = [value for value, _, _ in answer.progress]
    assert values == sorted(values), answer.progress
    assert [value for value, _, said in answer.progress if said.endswith(": completed")] == [
        total for _, total, _ in answer.progress if total is not None
    ], answer.progress
    return answer


async def until_harper_delegates(agent_url: str, *, within: float) -> None:
    """Ask harper until nobody is missing in its answer.

    Who was away a moment ago is given another chance by those that need it after a while, and not at once.
    """
    end = time.monotonic() + within
    while True:
        try:
            await harper_delegates(agent_url, ERAS[0])
        except AssertionError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.5)
        else:
            return


async def registry_follows_a_crash(
    registry_url: str,
    agent_url: str,
    fleet: Fleet,
    *,
    patience: float = 240,
    again: Callable[[], object] = lambda: None,
) -> None:
    """research is killed: the registry says so, and once it runs again, so does everything that needs it.

    `again` is called until the registry says so, for a supervisor that is quicker than the second look of a prober.
    """
    fleet.kill("research")
    await until_states(registry_url, {"research": "error"}, within=60, alive=again)
    fleet.start("research")
    await until_states(registry_url, ALL_OK, within=patience)
    await until_harper_delegates(agent_url, within=60)


async def registry_follows_a_freeze(registry_url: str, agent_url: str, fleet: Fleet, *, patience: float = 240) -> None:
    """tech_research hangs: the registry says so, and takes it back once it runs on."""
    fleet.freeze("tech_research")
    try:
        await until_states(registry_url, {"tech-research": "error"}, within=60)
    finally:
        fleet.thaw("tech_research")
    await until_states(registry_url, ALL_OK, within=patience)
    await until_harper_delegates(agent_url, within=60)

"""What the checks judge: requests sent and answers got, collected in one go, before anything is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pallas_testing.conformance.session import Era, Session, spoken
from pallas_testing.conformance.wire import Exchange, Wire, objects

DOCUMENT = "/.well-known/mcp/server.json"
HEALTH_TOOL = "get_health"
CHAT_TOOL = "send_message"
TOKEN = "pallas-testing-progress"  # noqa: S105 - of progress, no secret
SESSION_ID = "pallas-testing-conformance"
HEALTH_CALLS = 5
"""How often `get_health` is asked; the fastest one counts, since the machine may be busy with something else."""

Tool = Mapping[str, Any]
_NOTHING = Exchange("nothing")


@dataclass(frozen=True, slots=True)
class Turn:
    """A real turn to be observed: the message to send, and the text of the model's answer where it is known."""

    message: str
    reply: str = ""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Evidence of a registry: its document, and the first answer of each endpoint in it, in both eras."""

    document: Exchange
    endpoints: Mapping[str, Sequence[Exchange]]


@dataclass(frozen=True, slots=True)
class Pages:
    """Evidence of an agent's plain pages."""

    healthz: Exchange
    metrics: Exchange


@dataclass(frozen=True, slots=True)
class Agent:
    """Evidence of an agent in one era. What is None was not asked; of one that does not speak it, nothing was.

    `quiet` is a turn without a progress token, `turn` one with it; `history` comes after them. `model_calls` counts the
    requests to the model while its health was asked. `demanded`: the agent has to speak this era.
    """

    era: Era
    opening: Exchange
    demanded: bool = True
    tools: Exchange = _NOTHING
    health: Sequence[Exchange] = ()
    model_calls: int | None = None
    prompts: Exchange | None = None
    expected: Turn | None = None
    quiet: Exchange | None = None
    turn: Exchange | None = None
    history: Exchange | None = None
    closing: Sequence[Exchange] = ()

    @property
    def spoken(self) -> bool:
        """True where the agent speaks this era."""
        return spoken(self.era, self.opening)


async def of_registry(wire: Wire, sessions: Callable[[str], Sequence[Session]]) -> Catalogue:
    """Return the catalogue, and how the endpoints in it answer; `sessions` makes one in each era for a URL."""

    async def openings(url: str) -> Sequence[Exchange]:
        exchanges = []
        for session in sessions(url):
            exchanges.append(await session.open())
            await session.close()
        return exchanges

    document = await wire.get(DOCUMENT, "application/json")
    urls = remotes(document)
    return Catalogue(document, dict(zip(urls, await asyncio.gather(*map(openings, urls)), strict=True)))


def remotes(document: Exchange) -> list[str]:
    """Return the streamable-http URLs in a catalogue, whatever else is wrong with it."""
    body = document.messages[-1] if document.messages else {}
    servers = objects([entry.get("server") for entry in objects(body.get("servers"))])
    return sorted({url for server in servers for url in connectable(server)})


def connectable(server: Mapping[str, Any]) -> list[str]:
    """Return the streamable-http URLs of one server."""
    every = objects(server.get("remotes"))
    urls = [remote.get("url") for remote in every if remote.get("type") == "streamable-http"]
    return [url for url in urls if isinstance(url, str)]


async def of_pages(wire: Wire) -> Pages:
    """Return the plain pages beside an agent's endpoint; those at the root of its host may be a gateway's."""
    return Pages(await wire.get("healthz"), await wire.get("metrics"))


async def of_agent(session: Session, turn: Turn | None, model_requests: Callable[[], int] | None) -> Agent:
    """Return all that is to be judged of an agent in the era of the session; without `turn` no model is asked."""
    evidence = Agent(session.era, await session.open())
    if not evidence.spoken:
        return evidence
    tools = await session.request("tools/list")
    before = model_requests() if model_requests else 0
    health = [await session.request("tools/call", {"name": HEALTH_TOOL}) for _ in range(HEALTH_CALLS)]
    evidence = replace(
        evidence,
        tools=tools,
        health=health,
        model_calls=model_requests() - before if model_requests else None,
        prompts=await session.request("prompts/list") if _has_prompts(evidence.opening) else None,
    )
    if turn is not None:
        evidence = await _with_turns(evidence, session, turn)
    return replace(evidence, closing=await session.close())


async def _with_turns(evidence: Agent, session: Session, turn: Turn) -> Agent:
    tool = chat_tool(evidence.tools)
    if tool is None:
        return evidence
    known = properties(tool)
    conversation = {"session_id": SESSION_ID} if "session_id" in known and not session.id else {}
    params = {"name": tool["name"], "arguments": {"message": turn.message, **conversation}}
    quiet = await session.request("tools/call", params)
    observed = await session.request("tools/call", params, progress_token=TOKEN)
    history = None
    prompt = history_prompt(evidence.prompts)
    if prompt and (session.id or conversation):
        history = await session.request("prompts/get", {"name": prompt, "arguments": conversation})
    return replace(evidence, expected=turn, quiet=quiet, turn=observed, history=history)


def listed(exchange: Exchange | None, kind: str) -> list[Tool]:
    """Return the objects with a name in the answer to `tools/list` or `prompts/list`."""
    entries = objects(exchange.result.get(kind)) if exchange else []
    return [entry for entry in entries if isinstance(entry.get("name"), str)]


def tool_named(exchange: Exchange | None, name: str) -> Tool | None:
    """Return a tool of `tools/list` by its name."""
    return next((tool for tool in listed(exchange, "tools") if tool["name"] == name), None)


def chat_tool(exchange: Exchange | None) -> Tool | None:
    """Return the tool that takes a message: `send_message`, else the first other than `get_health` that does."""
    takers = [tool for tool in listed(exchange, "tools") if "message" in properties(tool)]
    others = [tool for tool in takers if tool["name"] != HEALTH_TOOL]
    return next((tool for tool in others if tool["name"] == CHAT_TOOL), others[0] if others else None)


def history_prompt(exchange: Exchange | None) -> str:
    """Return the name of the prompt `{agent}_history`, empty where there is none."""
    names = [str(prompt["name"]) for prompt in listed(exchange, "prompts")]
    return next((name for name in names if name.endswith("_history") and name != "_history"), "")


def properties(tool: Tool) -> Mapping[str, Any]:
    """Return the schemas of a tool's arguments that are objects, whatever else its own schema is."""
    schema = tool.get("inputSchema")
    arguments = schema.get("properties") if isinstance(schema, dict) else None
    entries = arguments.items() if isinstance(arguments, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}


def _has_prompts(opening: Exchange) -> bool:
    capabilities = opening.result.get("capabilities")
    return isinstance(capabilities, dict) and "prompts" in capabilities

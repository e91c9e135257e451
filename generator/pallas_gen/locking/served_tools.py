"""The agents of a running fleet, asked for the tools that they serve, in the way the registry asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.probe import probe
from pallas_contract.probe.probe import Result, Target
from pallas_gen.clients.entries import Entries, Entry

_AT_ONCE = 16
_PATIENCE = 10.0
"""Seconds for one agent: nobody waits for an answer of the registry here."""

_ATTEMPTS = 5
"""Times that one who answers is asked: the prober gives the list a second, which a busy machine may need."""

Tools = Mapping[str, Mapping[str, ToolContract]]
"""Host name of an agent -> its tools."""
Probe = Callable[..., Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Served:
    """The tools of the agents that have told them; of the others, in `failures`, why not."""

    tools: Tools
    failures: Mapping[str, str]
    hidden: tuple[str, ...] = ()
    """Those that have no address outside of the fleet, and were not asked."""


async def ask(entries: Entries, wanted: Collection[str], token: str = "", *, ask: Probe = probe.probe) -> Served:
    """Ask the agents of a fleet file, `wanted` by host name; those that ask for a token are shown `token`."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(entry: Entry) -> Result:
        headers = {"authorization": f"Bearer {token}"} if token and entry.token else {}
        target = Target(entry.url, deep=True, tools=True, headers=headers)
        async with turns:
            for _ in range(_ATTEMPTS):
                result = await ask(target, timeout=_PATIENCE)
                if result.tools is not None or not result.reachable:
                    break
            return result

    # whoever registered itself is in no fleet file, and is never shown the token
    asked = [entry for entry in entries.reached if entry.name in wanted and not entry.registered]
    results = await asyncio.gather(*map(one, asked))
    return _sorted_out(zip(asked, results, strict=True), wanted, entries.hidden)


def _sorted_out(results: Iterable[tuple[Entry, Result]], wanted: Collection[str], hidden: tuple[str, ...]) -> Served:
    tools: dict[str, Mapping[str, ToolContract]] = {}
    failures: dict[str, str] = dict.fromkeys(sorted(set(wanted) - set(hidden)), "the registry has no such agent")
    for entry, result in results:
        failures.pop(entry.name)
        if result.tools is not None:
            tools[entry.name] = result.tools
        else:
            failures[entry.name] = result.reason.message or "it has not told its tools"
    return Served(tools, failures, tuple(name for name in hidden if name in wanted))

"""The console behind the gate: the agents that a caller may ask. Its page calls them as any other client does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gateway.watching import feed
from pallas_service.access.caller import Caller, caller
from pallas_service.console import pages
from pallas_service.console.pages import Agent

MayAsk = Callable[[Caller | None, str], bool]


def agents(fleet: ResolvedFleet, behind: Collection[str], may_ask: MayAsk, events: ASGIApp | None = None) -> ASGIApp:
    """Return the application that lists those of `behind`, names as in the path, that its caller may ask.

    `events` are those about calls.
    """
    known = [
        Agent(host, agent.title or name, agent.description, f"/agents/{host}{names.MCP_PATH}")
        for name, agent in fleet.agents.items()
        if (host := names.slug(name)) in behind
    ]

    async def of(request: Request) -> Sequence[Agent]:
        who = caller(request)
        return [agent for agent in known if may_ask(who, agent.name)]

    if events is None:
        return Starlette(routes=[pages.listed(fleet.name, of)])
    return Starlette(routes=[pages.listed(fleet.name, of, calls=feed.PATH), Route(feed.PATH, events)])

"""The files of the console, and the agents that it offers.

The page is the same for everybody and holds no name; the list of agents is asked for by it, with the caller's token
where one is needed. It calls them itself, by MCP, at addresses of the server that it came from, and loads nothing from
elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pallas_service.console import reload

PATH = "/console"
AGENTS_PATH = f"{PATH}/agents.json"
HEADERS = {
    # answers come from models and tools: should one get through as markup, no script of it runs
    "content-security-policy": f"default-src 'none'; script-src 'self' {reload.SOURCE}; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_TYPES = {
    "console.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "watch.js": "text/javascript; charset=utf-8",
    "calls.js": "text/javascript; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that can be talked to; `mcp` is the path of its endpoint at this server."""

    name: str
    title: str
    description: str
    mcp: str


def routes() -> list[Route]:
    """Return the routes of the page itself, open to everybody."""
    folder = files("pallas_service.console") / "assets"
    documents = {name: (folder / name).read_bytes() for name in _TYPES}
    page = documents["console.html"]
    documents["console.html"] = page.replace(b"<head>", b"<head>" + reload.ELEMENT.encode(), 1)

    def route(path: str, name: str) -> Route:
        async def serve(request: Request) -> Response:
            return Response(documents[name], media_type=None, headers={**HEADERS, "content-type": _TYPES[name]})

        return Route(path, serve)

    return [route(PATH, "console.html"), *(route(f"{PATH}/{name}", name) for name in _TYPES if name != "console.html")]


def listed(fleet: str, agents: Callable[[Request], Awaitable[Sequence[Agent]]], calls: str = "") -> Route:
    """Return the route of the agents of a fleet: `agents` is asked each time for those that a request may call.

    `calls` is the path of the events about calls, where this server has some.
    """

    async def serve(request: Request) -> Response:
        rows = [asdict(agent) for agent in await agents(request)]
        return JSONResponse({"fleet": fleet, "agents": rows, "calls": calls}, headers={"cache-control": "no-store"})

    return Route(AGENTS_PATH, serve)

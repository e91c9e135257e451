"""`pallas console`, `pallas up --console`: the page on which people talk to the agents of a running fleet, here only.

Browsers may not call agents from a page of another origin, so this one leads the calls on. It adds nothing to them: a
token that an agent asks for is typed into the page.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pallas_cli.running import kubernetes, locate
from pallas_cli.running.catalogue import Member, NoRegistry
from pallas_cli.running.locate import Registry
from pallas_cli.trouble import Trouble
from pallas_contract import names
from pallas_contract.problems import Refused
from pallas_service.access import hosts
from pallas_service.console import pages
from pallas_service.console.pages import Agent
from pallas_service.http.bodies import BodyBudget, OverBudget, UploadAborted
from pallas_service.http.disconnect import HungUp, attended
from pallas_service.http.shutdown import HttpServer, Stop

HOST = "127.0.0.1"
MOST_BODY = 32 * 1024 * 1024
"""Bytes of a message with its images."""
_PASSED = ("accept", "authorization", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version")
_CONNECT = 30.0
"""Seconds for a connection; how long an agent thinks is not limited here, and the page has a button for it."""


def run(options: Namespace) -> int:
    """Serve the console until Ctrl-C.

    Raises:
        Refused: the URL of the registry is none, or the fleet file is needed and wrong.
        Trouble: no registry answers, or no way leads into the cluster.
        OSError: the port is taken.
    """
    with ExitStack() as stack:
        registry = stack.enter_context(locate.registry(options))
        relay = Relay(registry, stack, options.namespace if not options.registry else None)
        relay.members()
        listener = stack.enter_context(socket.create_server((HOST, options.port)))
        sys.stdout.write(f"{_address(listener)}    Ctrl-C ends it\n")
        sys.stdout.flush()
        asyncio.run(_serve(relay, listener))
    return 0


@asynccontextmanager
async def beside(file: Path) -> AsyncIterator[str]:
    """Serve the console of the fleet of `file` beside its supervisor, on a free port; yields the line that says where.

    The port is taken once those of the fleet are held, so it is none of them.
    """
    with ExitStack() as stack:
        relay = Relay(locate.here(file), stack, again=partial(_as_it_stands, file))
        listener = stack.enter_context(socket.create_server((HOST, 0)))
        async with _serving(relay, listener):
            yield f"talk to it at {_address(listener)}"


def _as_it_stands(file: Path) -> Registry | None:
    """Return where the registry is by the fleet file of now, which `--watch` has followed; None while it is wrong."""
    try:
        return locate.here(file)
    except Refused:
        return None


def _address(listener: socket.socket) -> str:
    return f"http://{HOST}:{listener.getsockname()[1]}{pages.PATH}"


async def _serve(relay: Relay, listener: socket.socket) -> None:
    stop = Stop()
    async with _serving(relay, listener):
        await stop.asked.wait()


@asynccontextmanager
async def _serving(relay: Relay, listener: socket.socket) -> AsyncIterator[None]:
    async with client() as http:
        server = HttpServer(application(relay, http), proxy_headers=False)
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """Yield the client that calls agents; a proxy of the environment is not told of this machine."""
    timeout = httpx2.Timeout(_CONNECT, read=None)
    async with httpx2.AsyncClient(timeout=timeout, trust_env=False) as http:
        yield http


class Relay:
    """Where the agents of a fleet are. `namespace` is where they run in Kubernetes; ways there end with `stack`.

    `again` says where the registry is once it does not answer any more; None where nobody knows.
    """

    def __init__(
        self,
        registry: Registry,
        stack: ExitStack,
        namespace: str | None = None,
        again: Callable[[], Registry | None] | None = None,
    ) -> None:
        self.fleet = registry.fleet.name if registry.fleet else urlsplit(registry.url).netloc
        self._registry = registry
        self._stack = stack
        self._namespace = namespace
        self._again = partial(self._forwarded_registry, namespace) if namespace else again
        self._urls: dict[str, str] = {}
        self._registered: frozenset[str] = frozenset()
        self._ways: dict[str, ExitStack] = {}
        self._looking = asyncio.Lock()
        self._renewing = threading.Lock()
        """Held while the way to the registry is made anew: lists are read in threads."""

    @property
    def may_move(self) -> bool:
        """Whether agents may be elsewhere later: ways into a cluster end, and ports of a fleet file are edited."""
        return self._again is not None

    def members(self) -> Sequence[Agent]:
        """Return the agents that can be called from here, as the registry has them now.

        Raises:
            Trouble: nobody answers.
        """
        listed = [member for member in self._listed() if member.kind == "agent"]
        there = [member for member in listed if member.url or self._namespace]
        self._registered = frozenset(member.name for member in there if member.is_registered)
        if not self._namespace:
            self._urls = {member.name: member.url for member in there}
        return [
            Agent(
                member.name, member.title or member.name, member.description, f"/agents/{member.name}{names.MCP_PATH}"
            )
            for member in there
        ]

    async def url(self, name: str) -> str | None:
        """Return the endpoint of an agent; None where there is no such agent.

        Raises:
            Trouble: nobody answers, or no way leads to it.
        """
        if name in self._urls:
            return self._urls[name]
        async with self._looking:
            if name not in self._urls:
                agents = await asyncio.to_thread(self.members)
                if self._namespace and name in {agent.name for agent in agents}:
                    url = await asyncio.to_thread(self._forwarded, self._namespace, name)
                    self._urls[name] = f"{url}{names.MCP_PATH}"
            return self._urls.get(name)

    def may_see_tokens(self, name: str) -> bool:
        """Return whether an agent is of the fleet file: the URL of one that registered is somebody else's word."""
        return name not in self._registered

    def forget(self, name: str, url: str) -> None:
        """Find an agent anew when it is asked again: nobody answered at `url`."""
        if self.may_move and self._urls.get(name) == url:
            del self._urls[name]

    def _listed(self) -> list[Member]:
        registry = self._registry
        try:
            return locate.members(registry)
        except NoRegistry:
            if not self._again:
                raise
        with self._renewing:
            # a second one would take down the way that the first reader is using
            if self._registry is registry:
                self._registry = self._again() or registry
            registry = self._registry
        return locate.members(registry)

    def _forwarded_registry(self, namespace: str) -> Registry:
        return Registry(self._forwarded(namespace, names.REGISTRY))

    def _forwarded(self, namespace: str, member: str) -> str:
        """Return the URL of a new way to a member; the one before, which ends with its pod, is taken down."""
        if member in self._ways:
            self._ways[member].close()
        self._ways[member] = self._stack.enter_context(ExitStack())
        return self._ways[member].enter_context(kubernetes.forwarded(namespace, member))


def application(relay: Relay, http: httpx2.AsyncClient) -> ASGIApp:
    """Return the console and the ways to the agents, for its own page alone."""

    async def agents(request: Request) -> Sequence[Agent]:
        return await asyncio.to_thread(relay.members)

    async def home(request: Request) -> Response:
        return RedirectResponse(pages.PATH)

    async def nobody(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status_code=503)

    routes = [
        Route("/", home),
        *pages.routes(),
        pages.listed(relay.fleet, agents),
        Route(f"/agents/{{name}}{names.MCP_PATH}", _calls(relay, http), methods=["POST"]),
    ]
    return _checked(Starlette(routes=routes, exception_handlers={Trouble: nobody}))


def _checked(app: ASGIApp) -> ASGIApp:
    """Return `app` behind a check of Host and Origin: those of the port that a request came to."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        port = scope["server"][1]
        # browsers leave out the port of their scheme
        known = [f"{host}{end}" for host in (HOST, "localhost") for end in (f":{port}", *([""] if port == 80 else []))]
        await hosts.HostCheck(app, hosts.settings(known))(scope, receive, send)

    return checked


def _calls(relay: Relay, http: httpx2.AsyncClient) -> Callable[[Request], Awaitable[Response]]:
    """Return what leads the messages of the page on; how much of them is in memory at once is limited."""
    bodies = BodyBudget(MOST_BODY, MOST_BODY)

    async def call(request: Request) -> Response:
        # another one can be sent by any page without asking first (a preflight)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _failed(400, "malformed", "Content-Type must be application/json")
        declared = int(request.headers.get("content-length", 0))
        if declared > MOST_BODY:
            return _too_large()
        try:
            if not bodies.admits(declared):
                raise OverBudget
            async with bodies.read(request.receive) as upload:
                body = b"".join(piece.get("body", b"") for piece in upload.pieces)
                upload.pieces.clear()  # a large body is in memory once
                if len(body) > MOST_BODY:
                    return _too_large()
                return await _asked(relay, http, request, body)
        except OverBudget:
            return _failed(503, "busy", "too many large messages at once")
        except (UploadAborted, HungUp):
            return Response(status_code=499)

    return call


async def _asked(relay: Relay, http: httpx2.AsyncClient, request: Request, body: bytes) -> Response:
    """Return what the agent of the path answers, or why it does not.

    Raises:
        HungUp: the caller closed its connection.
    """
    try:
        try:
            return await _asked_once(relay, http, request, body)
        except httpx2.ConnectError:
            if not relay.may_move:
                raise
        # nothing was sent yet, and it is elsewhere now: a way into the cluster ends with the pod that it led to
        return await _asked_once(relay, http, request, body)
    except (Trouble, httpx2.TransportError) as error:
        return _failed(503, "unreachable", str(error) or type(error).__name__)


async def _asked_once(relay: Relay, http: httpx2.AsyncClient, request: Request, body: bytes) -> Response:
    name = request.path_params["name"]
    url = await relay.url(name)
    if url is None:
        return _failed(404, "unknown_agent", "the registry has no agent of this name")
    try:
        passed = [header for header in _PASSED if header != "authorization" or relay.may_see_tokens(name)]
        headers = {header: request.headers[header] for header in passed if header in request.headers}
        return await attended(request, _forward(http, url, headers, body))
    except httpx2.TransportError:
        relay.forget(name, url)
        raise


async def _forward(http: httpx2.AsyncClient, url: str, headers: Mapping[str, str], body: bytes) -> Response:
    """Return the agent's answer as it comes; it is asked no more once its reader has gone."""
    async with AsyncExitStack() as stack:
        answer = await stack.enter_async_context(http.stream("POST", url, content=body, headers=headers))
        opened = stack.pop_all()

    async def content() -> AsyncIterator[bytes]:
        async with opened:
            async for chunk in answer.aiter_raw():
                yield chunk

    kept = {name: answer.headers[name] for name in ("content-type", "www-authenticate") if name in answer.headers}
    return StreamingResponse(content(), answer.status_code, headers={**kept, "cache-control": "no-store"})


def _too_large() -> Response:
    return _failed(413, "too_large", f"a message may have {MOST_BODY >> 20} MiB")


def _failed(status: int, reason: str, message: str) -> Response:
    error = {"code": -32603, "message": message, "data": {"reason": reason}}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=status)

"""Parts that misbehave: a model provider, a server with tools and the wire to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import mcp_types as t
import pytest
import uvicorn
from mcp.server import Server

# --- a model provider ---


@dataclass
class Provider:
    """Both APIs that preflight asks. `models` are there; `mood` is what a question gets instead: see `_Api`."""

    models: tuple[str, ...] = ("m",)
    mood: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Path and headers of every GET."""
    posted: int = 0
    ended: threading.Event = field(default_factory=threading.Event)


class _Api(BaseHTTPRequestHandler):
    provider: Provider

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        self.provider.posted += 1
        self.send_error(500)

    def do_GET(self) -> None:
        provider, mood = self.provider, self.provider.mood
        provider.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
        with contextlib.suppress(ConnectionError):
            if mood.isdigit():
                self._send(int(mood), b"{}")
            elif mood == "hang":
                provider.ended.wait()
            elif mood == "drip":
                self._drip(b" ", 0.05)
            elif mood == "flood":
                self._drip(b" " * (1 << 20), 0)
            elif mood == "401 without end":
                self._drip(b" ", 0.05, 401)
            elif mood == "gzip":
                self._send(200, b"no gzip at all", encoding="gzip")
            elif mood == "deep":
                self._send(200, b"[" * 100_000)
            elif mood == "lost":
                self.connection.shutdown(socket.SHUT_RDWR)
            elif mood:
                self._send(200, mood.encode())
            else:
                self._tell()

    def _tell(self) -> None:
        model = self.path.removeprefix("/v1/models/")
        if model == self.path:
            self._send(200, json.dumps({"data": [{"id": name} for name in self.provider.models]}).encode())
        else:
            self._send(200 if model in self.provider.models else 404, b"{}")

    def _send(self, status: int, body: bytes, encoding: str = "identity") -> None:
        self.send_response(status)
        self.send_header("content-encoding", encoding)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, piece: bytes, pause: float, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        while not self.provider.ended.wait(pause):
            self.wfile.write(piece)


@contextmanager
def providing(provider: Provider, port: int = 0) -> Iterator[str]:
    """`provider` on a port; its URL without any path."""
    handler = type("Handler", (_Api,), {"provider": provider})
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            provider.ended.set()
            server.shutdown()
            thread.join()


# --- a server with tools, and a wire to it ---


class Argos:
    """A server of the SDK that is no agent: `search` answers, `hold` does not before its caller gives up."""

    def __init__(self) -> None:
        self.held, self.given_up = threading.Event(), threading.Event()
        self.hangs = False
        """Whether it says nothing to the end of a session."""
        self.told, self.left = threading.Semaphore(0), threading.Semaphore(0)
        """Ends of sessions that it says nothing to, and of these the ones whose client waits no longer."""
        self.port = 0

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        schema = {"type": "object", "properties": {"message": {"type": "string"}}}
        return t.ListToolsResult(
            tools=[t.Tool(name=name, description="x", input_schema=schema) for name in ("search", "hold")]
        )

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        if params.name == "hold":
            self.held.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up.set()
        text = f"found {(params.arguments or {}).get('message')}"
        return t.CallToolResult(content=[t.TextContent(type="text", text=text)])


@contextmanager
def argos_serving() -> Iterator[Argos]:
    argos = Argos()
    made: Server[Any] = Server("argos", on_list_tools=argos.tools, on_call_tool=argos.call)
    app = made.streamable_http_app()

    async def served(scope: Any, receive: Any, send: Any) -> None:
        if not argos.hangs or scope.get("method") != "DELETE":
            await app(scope, receive, send)
            return
        argos.told.release()
        while (await receive())["type"] != "http.disconnect":
            pass
        argos.left.release()

    config = uvicorn.Config(served, log_config=None, ws="none", lifespan="on")
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        argos.port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield argos
        server.should_exit = True
        thread.join()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"


class Wire:
    """A port whose connections lead to `target`, as long as `mood` is empty.

    `silent` takes connections and requests and never answers; `headers` answers with a head and no more; `drip` goes on
    with a byte of nothing now and then. Made well again, it resets the connections that went bad, as a host does that
    was started anew.
    """

    def __init__(self, target: int) -> None:
        self.port, self.mood = 0, ""
        self._target = target
        self._bad: set[asyncio.StreamWriter] = set()
        self._loop: asyncio.AbstractEventLoop
        self.waiting = 0
        """Connections that wait for an answer that does not come."""

    def turn(self, mood: str) -> None:
        asyncio.run_coroutine_threadsafe(self._turn(mood), self._loop).result()

    async def _turn(self, mood: str) -> None:
        self.mood = mood
        if not mood:
            for writer in self._bad:
                writer.transport.abort()

    @contextmanager
    def open(self, port: int = 0) -> Iterator[Wire]:
        ready, done = threading.Event(), asyncio.Event()

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            async with await asyncio.start_server(self._taken, "127.0.0.1", port) as server:
                self.port = server.sockets[0].getsockname()[1]
                ready.set()
                await done.wait()
                server.close()
                server.close_clients()

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        ready.wait()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(done.set)
            thread.join()

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self._target)
        back = asyncio.create_task(self._back(inner, writer))
        try:
            while data := await reader.read(65536):
                if self.mood:
                    await self._spoil(data, writer)
                else:
                    outer.write(data)
        except OSError:
            pass
        finally:
            self.waiting -= writer in self._bad
            self._bad.discard(writer)
            back.cancel()
            outer.close()
            writer.close()

    async def _spoil(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        known = writer in self._bad
        self._bad.add(writer)
        self.waiting += not known
        if known or self.mood == "silent":
            return
        writer.write(HEAD % (b"application/json" if self.mood == "headers" else b"text/event-stream"))
        while self.mood == "drip":
            writer.write(b"1\r\n:\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    async def _back(self, inner: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await inner.read(65536):
                if not self.mood:
                    writer.write(data)
            if not self.mood:
                writer.close()


# --- what the agents' model is told to do ---


def said(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def scripted(body: dict[str, Any]) -> dict[str, Any]:
    """`to A rest` asks agent A for `rest`, `use T rest` calls tool T with it, and tells the answer, or all else."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return {"content": f"got {said(last)}"}
    verb, _, rest = said(last).partition(" ")
    if verb not in ("to", "use"):
        return {"content": said(last)}
    name, _, rest = rest.partition(" ")
    called = f"{name}__{name}" if verb == "to" else name
    function = {"name": called, "arguments": json.dumps({"message": rest})}
    return {"content": "", "tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}


def modelling(toolkit: Any) -> AbstractContextManager[Any]:
    """The stand-in for a model's API, doing as it is told."""
    return contextmanager(toolkit.serve_model)(toolkit.Model(scripted, models=["m"]))


@dataclass
class Chain:
    """`front` asks `middle`, which asks `leaf`, which uses argos over the wire; all of them on one model."""

    agents: Any
    model: Any
    argos: Argos
    wire: Wire

    def forget(self) -> None:
        """All that was waited for can be waited for again."""
        model, argos = self.model, self.argos
        for event in (model.entered, model.released, model.abandoned, argos.held, argos.given_up):
            event.clear()

    def page(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.agents.get(name, "/healthz")[1])
        return found

    def metrics(self, name: str) -> dict[str, float]:
        """Value by series, as it is written."""
        lines = self.agents.get(name, "/metrics")[1].splitlines()
        return {key: float(value) for key, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


LEVELS = ("front", "middle", "leaf")


@pytest.fixture(scope="package")
def chain(toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    ports = {name: toolkit.free_port() for name in LEVELS}
    agents: dict[str, Any] = {name: {"card": f"{name}.yaml", "port": ports[name]} for name in LEVELS}
    agents["front"]["depends_on"], agents["middle"]["depends_on"] = ["middle"], ["leaf"]
    servers = {"front": ["middle"], "middle": ["leaf"], "leaf": ["argos"]}
    with ExitStack() as stack:
        argos = stack.enter_context(argos_serving())
        wire = stack.enter_context(Wire(argos.port).open())
        model = stack.enter_context(modelling(toolkit))
        files: dict[str, Any] = {
            "agents.yaml": {"name": "c", "namespace": "x", "registry_port": toolkit.free_port(), "agents": agents},
            "fastagent.config.yaml": {
                "default_model": "openai.m",
                "llm_retries": 0,
                "mcp": {"servers": {"argos": {"url": f"http://127.0.0.1:{wire.port}/mcp"}}},
            },
            ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
        }
        for name in LEVELS:
            files[f"{name}.yaml"] = {"type": "agent", "name": name, "instruction": "x", "servers": servers[name]}
        folder = toolkit.write_files(tmp_path_factory.mktemp("chain"), files)
        started = stack.enter_context(toolkit.running(folder, *LEVELS))
        yield Chain(started, model, argos, wire)


@pytest.fixture(scope="session")
def parts() -> SimpleNamespace:
    """What is defined here, for test modules: none of them can import it."""
    return SimpleNamespace(
        Provider=Provider,
        providing=providing,
        argos_serving=argos_serving,
        Wire=Wire,
        scripted=scripted,
        modelling=modelling,
    )

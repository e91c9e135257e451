"""An agent and a registry that keep the contract in both eras, each with switches that break one sentence of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from pallas_testing.conformance.evidence import Turn
from pallas_testing.conformance.requirement import Finding
from pallas_testing.conformance.run import Question, Report, check

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
REPLY = "Argos says: sunny."
TURN = Turn("How is the weather?", REPLY)
SESSION = "s-1"
Json = dict[str, Any]


@dataclass
class Agent:
    """The agent. `switches` name what it does wrong; `now` is its clock, in seconds; `asked` counts model requests.

    `replaced` maps a method, `get_health` or `turn` to what it answers instead: a result, of a turn all messages.
    """

    switches: frozenset[str] = frozenset()
    now: float = 0.0
    asked: int = 0
    sessions: set[str] = field(default_factory=set)
    history: list[Json] = field(default_factory=list)
    replaced: Json = field(default_factory=dict)

    def on(self, switch: str) -> bool:
        return switch in self.switches

    @property
    def app(self) -> Starlette:
        routes = [
            Route("/mcp", self.mcp, methods=["POST", "DELETE"]),
            Route("/healthz", self.healthz),
            Route("/metrics", self.metrics),
            Mount("/agents/jarvis", routes=[Route("/mcp", self.mcp, methods=["POST", "DELETE"])]),
        ]
        return Starlette(routes=routes)

    async def healthz(self, _: Request) -> Response:
        if self.on("no healthz"):
            return PlainTextResponse("no such page", 404)
        return JSONResponse({"status": "ok"} | ({} if self.on("healthz without provider") else {"llm": {}}))

    async def metrics(self, _: Request) -> Response:
        return PlainTextResponse("<html>" if self.on("metrics are a page") else "agent_calls_total 1.0\n")

    async def mcp(self, request: Request) -> Response:
        if self.on("no MCP"):
            return PlainTextResponse("hello")
        if self.on("asks for a token") and "authorization" not in request.headers:
            return PlainTextResponse("who are you?", 401)
        session = request.headers.get("mcp-session-id", "")
        if request.method == "DELETE":
            if not self.on("keeps sessions"):
                self.sessions.discard(session)
            status = 405 if self.on("refuses DELETE") else 500 if self.on("fails at DELETE") else 200
            return Response(status_code=status)
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        modern = request.headers.get("mcp-protocol-version") == MODERN
        if modern and (self.on("legacy only") or request.headers["mcp-method"] != message["method"]):
            return PlainTextResponse("no", 400)
        if not modern and self.on("modern only"):
            return PlainTextResponse("no", 400)
        if session and session not in self.sessions:
            return PlainTextResponse("no such session", 404)
        return self._respond(message)

    def _respond(self, message: Json) -> Response:
        methods: dict[str, Callable[[Json], Json]] = {
            "initialize": self._initialize,
            "server/discover": lambda _: {"supportedVersions": [MODERN], "capabilities": self._capabilities()},
            "tools/list": lambda _: {"tools": self._tools()},
            "prompts/list": lambda _: {"prompts": [{"name": "log" if self.on("other prompt") else "jarvis_history"}]},
            "prompts/get": self._history,
        }
        number, method, params = message["id"], message["method"], message["params"]
        if method == "tools/call" and params["name"] != "get_health":
            return self._turn(number, params)
        if method == "tools/call":
            return self._reply(number, self.replaced.get("get_health", self._health()))
        headers = {"mcp-session-id": SESSION} if method == "initialize" and not self.on("no sessions") else {}
        result = methods[method](params)
        answer = {"jsonrpc": "2.0", "id": number, "result": self.replaced.get(method, result)}
        return Response(json.dumps(answer), media_type="application/json", headers=headers)

    def _reply(self, number: int, result: Json) -> Response:
        if self.on("health fails"):
            return JSONResponse({"jsonrpc": "2.0", "id": number, "error": {"code": -32603, "message": "no"}})
        answer = {"jsonrpc": "2.0", "id": number, "result": result}
        return Response(json.dumps(answer), media_type="application/json")

    def _capabilities(self) -> Json:
        return {"tools": {}} | ({} if self.on("no prompts") else {"prompts": {}})

    def _initialize(self, _: Json) -> Json:
        self.sessions.add(SESSION)
        return {"protocolVersion": LEGACY, "capabilities": self._capabilities(), "serverInfo": {"name": "jarvis"}}

    def _tools(self) -> list[Json]:
        closed: Json = {"type": "object", "properties": {}, "additionalProperties": False}
        if self.on("health takes arguments"):
            closed["properties"] = {"deep": {"type": "boolean"}}
        if self.on("health takes anything"):
            del closed["additionalProperties"]
        health = {"name": "get_health", "description": "How it is.", "inputSchema": closed}
        if self.on("health without description"):
            del health["description"]
        properties: Json = {
            "message": {"type": "string"},
            "images": {"type": "array", "items": {"type": "object"}},
            "session_id": {"type": "string"},
        }
        if self.on("one image"):
            properties["images"] = {"type": "object"}
        required = ["message", "images"] if self.on("images required") else ["message"]
        if self.on("message optional"):
            required = []
        if self.on("no message"):
            properties["prompt"] = properties.pop("message")
        schema = {"type": "object", "properties": properties, "required": required}
        chat: Json = {"name": "ask" if self.on("other chat tool") else "send_message", "inputSchema": schema}
        if self.on("tool without schema"):
            del chat["inputSchema"]
        return [chat, *([] if self.on("no health tool") else [health])]

    def _health(self) -> Json:
        if self.on("slow health") or self.on("slow probes"):
            self.now += 2.0
        if self.on("health asks the model"):
            self.asked += 1
        document: Json = {"status": "degraded", "message": "Unreachable: argos", "timestamp": "2026-03-12T15:42:00Z"}
        if self.on("slow health"):
            document = {"status": "ok"}
        if self.on("unknown status"):
            document["status"] = "fine"
        if self.on("time of day"):
            document["timestamp"] = "12 March, 15:42"
        if self.on("no explanation"):
            del document["message"]
        if self.on("ok with a number"):
            document |= {"status": "ok", "message": 1}
        text = "all is well" if self.on("health in prose") else json.dumps(document)
        blocks = [{"type": "text", "text": text}] * (2 if self.on("two blocks") else 1)
        return {"content": blocks, "isError": self.on("health is an error")}

    def _history(self, _: Json) -> Json:
        return {"messages": [] if self.on("empty history") else self.history}

    def _turn(self, number: int, params: Json) -> Response:
        self.asked += 1
        text = params["arguments"]["message"]
        self.history += [
            {"role": role, "content": {"type": "text", "text": words}}
            for role, words in (("user", text), ("assistant", REPLY))
        ]
        blocks = [{"type": "text", "text": "something" if self.on("other words") else REPLY}]
        result = {"content": [] if self.on("no answer") else blocks, "isError": self.on("turn fails")}
        end = {"jsonrpc": "2.0", "id": number, "result": result}
        token = params.get("_meta", {}).get("progressToken") or ("loud" if self.on("loud") else "")
        messages = [*self._progress(token), end] if token else [end]
        replaced = self.replaced.get("turn", messages)
        messages = replaced if isinstance(replaced, list) else [replaced]
        if self.on("result first"):
            messages = [end, *messages[:-1]]
        body = "".join(f"event: message\ndata: {json.dumps(message)}\n\n" for message in messages)
        return Response(body, media_type="text/plain" if self.on("no stream") else "text/event-stream")

    def _progress(self, token: str) -> list[Json]:
        """The lines as decision 0010 has them, or with `as the seed` as the seed's picture has them."""
        lines: list[tuple[float, float | None, str | None]] = [
            (1, None, "jarvis step 1 (llm)"),
            (2, None, "argos/search_web: started"),
            (3, None, "jarvis step 2 (tool)"),
            (4, 4, "argos/search_web: completed"),
            (5, None, "jarvis step 3 (llm)"),
        ]
        if self.on("as the seed"):
            lines[3] = (1, 1, "argos/search_web: completed")
        if self.on("no steps"):
            lines = [line for line in lines if "step" not in str(line[2])]
        changes: dict[str, tuple[int, tuple[Any, Any, Any]]] = {
            "goes back": (4, (2, None, "jarvis step 3 (llm)")),
            "total while it goes on": (0, (1, 5, "jarvis step 1 (llm)")),
            "ends without total": (3, (4, None, "argos/search_web: completed")),
            "total of hundred": (3, (4, 100, "argos/search_web: completed")),
            "prose": (2, (3, None, "looking for it")),
            "progress in words": (2, ("three", None, "jarvis step 2 (tool)")),
            "never ends": (3, (4, None, "jarvis step 2 (tool)")),
            "ends unasked": (1, (2, None, "jarvis step 1 (tool)")),
        }
        for switch in self.switches & changes.keys():
            index, line = changes[switch]
            lines[index] = line
        name = "other" if self.on("other token") else token
        return [
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": name, "progress": progress, "total": total, "message": text},
            }
            for progress, total, text in lines
        ]


SERVER: Json = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    "name": "com.example.project/tech-research",
    "title": "Research",
    "description": "Looks things up",
    "version": "1.0.0",
    "icons": [{"src": "/icons/research.svg", "sizes": "any"}],
    "remotes": [{"type": "streamable-http", "url": "http://agent.example:8080/mcp"}],
    "capabilities": {"model": "m", "vision": False, "context_window": 200000, "max_output_tokens": 32000},
}
META = {"status": "active", "updatedAt": "2026-03-12T10:00:00Z", "isLatest": True}
OFFICIAL = "io.modelcontextprotocol.registry/official"


@dataclass
class Registry:
    """The registry: one server, with `changes` to its fields (None takes one away), or another whole document."""

    changes: Json = field(default_factory=dict)
    meta: Any = field(default_factory=lambda: {OFFICIAL: META})
    whole: Any = None
    status: int = 200
    media_type: str = "application/json"
    copies: int = 1

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/.well-known/mcp/server.json", self.document)])

    async def document(self, _: Request) -> Response:
        server = {key: value for key, value in {**SERVER, **self.changes}.items() if value is not None}
        entries = [{"server": server, "_meta": self.meta}] * self.copies
        body = {"servers": entries} if self.whole is None else self.whole
        return Response(json.dumps(body), self.status, media_type=self.media_type)


class Hosts(httpx.AsyncBaseTransport):
    """The network: one application for each host, and nobody elsewhere."""

    def __init__(self, **apps: Starlette) -> None:
        self._apps = {name: httpx.ASGITransport(app) for name, app in apps.items()}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        app = self._apps.get(request.url.host.partition(".")[0])
        if app is None:
            raise httpx.ConnectError("connection refused")
        return await app.handle_async_request(request)


async def judged_agent(agent: Agent, turn: Turn | None = TURN, **question: Any) -> Report:
    """Return the report on an agent whose model's requests are counted."""
    asking = Question("http://agent.example/mcp", turn=turn, model_requests=lambda: agent.asked, **question)
    return await check(asking, transport=Hosts(agent=agent.app), clock=lambda: agent.now)


async def judged_registry(registry: Registry, agent: Agent | None = None, **question: Any) -> Report:
    """Return the report on a registry; the endpoint in it is that of `agent`, None for nobody."""
    hosts = {"registry": registry.app} | ({"agent": agent.app} if agent else {})
    return await check(Question("http://registry.example", **question), transport=Hosts(**hosts))


def verdicts(report: Report, verdict: str) -> set[str]:
    """Return the requirements with this verdict in any era."""
    return {finding.id for finding in report.of(verdict)}


def of(report: Report, requirement: str) -> list[Finding]:
    """Return the findings about a requirement, one for each era."""
    return [finding for finding in report.findings if finding.id == requirement]

"""The data plane as raw ASGI: decide by the message, forward its bytes, pass the answer on as it comes.

It has no session: those of the handshake era are the agents', and their ids pass as all of MCP's headers do.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import aiohttp
import structlog
from mcp_types import HEADER_MISMATCH, INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from pallas_gateway.confirmation.confirmations import Asked
from pallas_gateway.data_plane import headers, lists, message, permission, shares, upstream
from pallas_gateway.data_plane.answer import Answer, Refused
from pallas_gateway.data_plane.checks import Checks, Stopped
from pallas_gateway.data_plane.errors import Reason
from pallas_gateway.data_plane.record import END, LISTEN, Call, Outcome, Record, Watcher
from pallas_gateway.policy.policy import Decision, principal_name
from pallas_gateway.policy.route import Kind, Route
from pallas_gateway.telemetry import spans
from pallas_gateway.tenants import Exceeded, Tenants, is_counted
from pallas_service.access.caller import Caller, caller
from pallas_service.http.bodies import SMALL, BodyBudget, OverBudget, UploadAborted
from pallas_service.http.disconnect import HungUp, Overdue, attended

AGENT = "agent"
"""Key of `path_params` in the ASGI scope with the host name of the agent or service that the path names; empty where
the caller's route says it."""
KIND = "kind"
"""Key beside it with the kind of member that the path is for."""
_METHODS = {"POST": "", "GET": LISTEN, "DELETE": END}
_ALLOW = ((b"allow", b"DELETE, GET, POST"),)
_AGAIN = ((b"retry-after", b"1"),)
TIMEOUT = 3600.0
"""Default of `gateway.timeout` in seconds: as long as an agent takes for a task at most."""
_WEIGHT = 2
"""Times that a large body is counted: its bytes wait for the agent, and were text and objects before."""
_LARGE = 256 << 10
"""Bytes of a body from which on it is not read in the event loop."""
_SHOWN = 80
"""Characters of a name from outside that are shown."""
_RECORDED = 200
"""Characters of the name of a tool or resource that are kept while the call is open, and recorded."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """`body` bytes of a body, `seconds` of a request from its body to the end of its answer.

    `streams` is how many of them one caller or tenant may listen to.
    """

    body: int
    seconds: float = TIMEOUT
    streams: int = shares.MOST


class DataPlane:
    """ASGI for `/agents/NAME/mcp` and `/services/NAME/mcp`, behind the gate.

    `routes` are the members by host name, `tenants` those of the callers, `checks` what each call passes, nothing where
    there are none. `listens` is told of each call that is only listened to, once that is known.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        client: aiohttp.ClientSession,
        bounds: Bounds,
        *,
        tenants: Tenants | None = None,
        checks: Checks | None = None,
        watchers: Collection[Watcher] = (),
        listens: Callable[[Call], None] = lambda call: None,
    ) -> None:
        self.routes = routes
        self.pool = upstream.Pool(client)
        self.limit = bounds.body
        self.timeout = bounds.seconds
        self.tenants = tenants or Tenants()
        self.checks = checks or Checks()
        self.policy = self.checks.policy
        self.bodies = BodyBudget(bounds.body, bounds.body, weight=_WEIGHT)
        self.listens = listens
        self.streams = shares.Streams(bounds.streams)
        self.one_by_one = asyncio.Lock()
        """Held while a large body is read: as text, one takes up to eight times its size."""
        self._watchers = tuple(watchers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(self, scope, receive, Answer(send))
        started = time.perf_counter()
        for watcher in self._watchers:
            watcher.begin(exchange.call)
        outcome: Outcome = "hung_up"
        try:
            outcome = await exchange.run()
        finally:
            record = Record(exchange.call, outcome, exchange.answer.status, time.perf_counter() - started)
            for watcher in self._watchers:
                watcher.end(record)


class _Exchange:
    """One request and its answer."""

    def __init__(self, plane: DataPlane, scope: Scope, receive: Receive, answer: Answer) -> None:
        self._plane = plane
        self._scope = scope
        self.receive = receive
        self._headers = Headers(scope=scope)
        self._caller = caller(HTTPConnection(scope))
        self._allowance = plane.tenants.of(self._caller)
        self._owner = shares.owner(self._caller, self._allowance)
        self._id: str | int | None = None
        self._confirm: tuple[Decision, Asked] | None = None
        self.answer = answer
        agent: str = scope["path_params"][AGENT] or plane.policy.route(self._caller) or ""
        self._kind: Kind = scope["path_params"].get(KIND, "agent")
        name = self._caller.name if self._caller else ""
        self.call = Call(
            agent,
            name,
            _METHODS.get(scope["method"], ""),
            tenant=self._allowance.name if self._allowance else "",
            http_method=scope["method"],
            principal=principal_name(self._caller) if self._caller else "",
        )

    async def run(self) -> Outcome:
        """Answer the request, and return what became of it."""
        try:
            await self._serve()
        except Refused as refused:
            refused.__traceback__ = None  # nor does it keep the body while a client takes its time
            await self.answer.refuse(refused)
            return refused.reason
        except (HungUp, UploadAborted):
            return "hung_up"
        except Exception:  # whatever it is, its caller is told in a word, and nobody else hears of it
            log.exception("request failed", agent=self.call.agent, method=self.call.method)
            failed = self._refusal("failed", "the gateway could not pass this on", 500)
            await self.answer.refuse(failed)
            return failed.reason
        return "answered"

    async def _serve(self) -> None:
        if self._scope["method"] not in _METHODS:
            raise Refused(
                "malformed", "MCP is spoken with POST, GET and DELETE", status=405, code=INVALID_REQUEST, headers=_ALLOW
            )
        if self._scope["method"] != "POST":
            try:
                message.check_head(self._headers)
            except message.Malformed as error:
                raise _malformed(error) from None
            self._permit(message.Message())
            await self._forward(None)
            return
        declared = int(self._headers.get("content-length") or 0)
        if declared > self._plane.limit:
            raise self._too_large(f"{self._plane.limit} bytes")
        try:
            if not self._plane.bodies.admits(declared, self._owner):
                raise OverBudget
            async with self._plane.bodies.read(self.receive, self._owner) as upload:
                body = b"".join(piece.get("body", b"") for piece in upload.pieces)
                upload.pieces.clear()  # a large body is in memory once
                if len(body) > self._plane.limit:
                    raise self._too_large(f"{self._plane.limit} bytes")
                await self._read(body)
                outgoing = upstream.Outgoing(body, lambda: self._plane.bodies.release(upload))
                del body  # once it is sent nothing has it: an agent may work on it for an hour
                await self._forward(outgoing)
        except OverBudget:
            raise Refused("busy", "too many large requests at once", status=503, headers=_AGAIN) from None

    def _too_large(self, most: str) -> Refused:
        return Refused("too_large", f"request body too large: it may have {most}", status=413)

    async def _parse(self, body: bytes) -> tuple[message.Message, str]:
        """Return the message, and the digest of its arguments where that is recorded."""
        if len(body) <= _LARGE:
            return self._parsed(body)
        async with self._plane.one_by_one:
            return await asyncio.to_thread(self._parsed, body)

    def _parsed(self, body: bytes) -> tuple[message.Message, str]:
        parsed = message.parse(body)
        return parsed, self._plane.checks.digest(parsed.arguments)

    async def _read(self, body: bytes) -> None:
        """Note what is called; a body and headers that contradict each other are refused."""
        try:
            parsed, arguments = await self._parse(body)
            self._id = parsed.id
            call = self.call
            call.method, call.arguments = parsed.method, arguments
            call.name = parsed.name and parsed.name[:_RECORDED]
            message.check(parsed, self._headers)
            message.check_encoding(self._headers, parsed.id)
            self._permit(parsed)
        except message.Malformed as error:
            raise _malformed(error) from None
        except message.TooManyValues:
            raise self._too_large(f"{message.MOST_VALUES} values") from None

    def _permit(self, parsed: message.Message) -> None:
        """Refuse what the caller may not ask of the agent; one that it may ask nothing of is like one that is not."""
        if not self.call.agent:
            text = "no route leads this caller to an agent: name one, as /agents/NAME/mcp"
            raise Refused("no_route", text, status=404, request_id=self._id)
        decision = permission.decide(self._plane.policy, self._caller, self.call.agent, parsed)
        if decision.reason == "unknown_agent":
            raise self._unknown()
        if decision.reason:
            raise Refused(decision.reason, decision.text, status=permission.status(self._id), request_id=self._id)
        if decision.verdict == "confirm":
            arguments = parsed.arguments if isinstance(parsed.arguments, Mapping) else {}
            self._confirm = decision, Asked(arguments, parsed.more)

    def _unknown(self) -> Refused:
        text = f"there is no {self._kind} `{self.call.agent[:_SHOWN]}` behind this gateway"
        return Refused("unknown_agent", text, status=404, request_id=self._id)

    async def _forward(self, body: upstream.Outgoing | None) -> None:
        route = self._plane.routes.get(self.call.agent)
        if route is None or route.kind != self._kind or not route.admits(self._caller):
            raise self._unknown()
        try:
            if self.call.lasts:
                with self._plane.streams.listening(self._owner):
                    self._plane.listens(self.call)
                    await self._ask_in_time(route, body, None)
            elif self._allowance is None or not is_counted(self.call.method) or body is None:
                await self._ask_in_time(route, body, self._plane.timeout)
            else:
                async with self._plane.tenants.using(self._allowance):
                    await self._ask_in_time(route, body, min(self._plane.timeout, self._allowance.timeout))
        except Exceeded as error:
            raise self._limited(error.reason, str(error), error.retry_after) from None
        except shares.TooMany as error:
            raise self._limited("concurrency", str(error), 1) from None

    def _limited(self, reason: Reason, words: str, retry_after: int) -> Refused:
        status = 429 if self._id is None else 200
        return Refused(reason, words, status=status, request_id=self._id, retry_after=retry_after)

    async def _ask_in_time(self, route: Route, body: upstream.Outgoing | None, seconds: float | None) -> None:
        await self._check()
        try:
            # after the body nothing is received but the end of the connection
            await attended(self, self._ask(route, body), seconds)
        except Overdue:
            raise self._failed("timeout", f"did not finish its answer in {seconds:g} s") from None

    async def _check(self) -> None:
        """Have the call confirmed, where it must be, and recorded: after this it is passed on."""
        confirm = self._confirm
        self._confirm = None
        checks = self._plane.checks
        try:
            if confirm:
                await checks.confirmed(self._caller, self.call, *confirm)
            self.call.decision = await checks.recorded(self.call)
        except Stopped as stop:
            status = 503 if self._id is None and stop.reason == "unrecorded" else permission.status(self._id)
            raise Refused(stop.reason, str(stop), status=status, request_id=self._id, data=stop.data) from None

    async def _ask(self, route: Route, body: upstream.Outgoing | None) -> None:
        if not spans.are_recorded():
            await self._exchange(route, body)
            return
        call = self.call
        tool = call.name if call.method == "tools/call" else None
        about = {spans.TOOL: tool, spans.TENANT: call.tenant, spans.AGENT: call.agent}
        with spans.request(call.method, self._headers.get("traceparent", ""), about):
            await self._exchange(route, body)

    async def _exchange(self, route: Route, body: upstream.Outgoing | None) -> None:
        written = self._scope["headers"]
        if self._plane.policy.is_guarded:
            written = lists.without_replay(written)
        passed = headers.for_agent(
            written, token=route.token, caller=digest(self._caller), traceparent=spans.traceparent()
        )
        try:
            response = await self._plane.pool.ask(self._scope["method"], route.url, headers=passed, body=body)
            try:
                await self._pass_on(response)
            finally:
                response.close()
        except upstream.Unreachable as error:
            raise self._failed("unreachable", str(error)) from None
        except upstream.Interrupted as error:
            raise self._failed("interrupted", f"broke off its answer: it {error}") from None

    async def _pass_on(self, response: upstream.Reply | aiohttp.ClientResponse) -> None:
        if response.status in (401, 403):
            raise self._failed("not_admitted", "does not admit the gateway")
        if 300 <= response.status < 400:
            raise self._failed("unreachable", "answered with a redirect")
        head = headers.for_client(response.raw_headers)
        if self._plane.policy.is_guarded and self.call.method in lists.METHODS and response.status == 200:
            await self._pass_list_on(response, head)
            return
        stream = headers.is_stream(head)
        size = None if stream else headers.size(head)
        if size is not None and size <= SMALL:
            # nothing is sent before all of it is there, so that what breaks off is an error and not half an answer
            await self.answer.whole(response.status, head, await upstream.whole(response))
            return
        await self.answer.begin(response.status, head, stream=stream)
        async for piece in upstream.pieces(response):
            await self.answer.piece(piece)
        await self.answer.end()

    async def _pass_list_on(self, response: upstream.Reply | aiohttp.ClientResponse, head: headers.Pairs) -> None:
        """Send a list without what the caller may not call, once all of it is there."""
        data = bytearray()
        async for piece in upstream.pieces(response):
            data += piece
            if len(data) > lists.MOST:
                raise self._failed("failed", f"gives a list of more than {lists.MOST} bytes")
        policy = self._plane.policy
        try:
            body = lists.filtered(
                bytes(data),
                stream=headers.is_stream(head),
                tool=lambda name: policy.may(self._caller, self.call.agent, name),
                others=policy.may_all(self._caller, self.call.agent),
            )
        except ValueError:
            raise self._failed("failed", "gives a list that cannot be read") from None
        await self.answer.whole(response.status, lists.head(head, len(body)), body)

    def _failed(self, reason: Reason, words: str) -> Refused:
        """Return the refusal for an agent that gives no answer."""
        return self._refusal(reason, f"{self._kind} `{self.call.agent}` {words}", 502)

    def _refusal(self, reason: Reason, text: str, status: int) -> Refused:
        """Return a refusal with `status`; 200 where there is an id to answer (decision 0022)."""
        return Refused(reason, text, status=status if self._id is None else 200, request_id=self._id)


def _malformed(error: message.Malformed) -> Refused:
    """Return the refusal of a message or head that is malformed."""
    error.__traceback__ = None  # its frames have the body and all that was read of it
    reason: Reason = "header_mismatch" if error.code == HEADER_MISMATCH else "malformed"
    return Refused(reason, str(error), status=400, request_id=error.id, code=error.code)


def digest(verified: Caller | None) -> str:
    """Return what an agent tells callers apart by: the same for every token of one, empty where nobody is verified."""
    return _digest(verified.identity) if verified else ""


@lru_cache(maxsize=1024)
def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()

"""The ASGI application: which API was asked, and who answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from pallas_testing.model.exchange import CannotFail, Failure, Request
from pallas_testing.model.matching import Unscripted
from pallas_testing.model.scripted import ScriptedModel
from pallas_testing.model.sending import Sender
from pallas_testing.model.wire import APIS, Api, sse

OUTAGE = "/outage"
"""Where a test has a model fail that it cannot reach as an object: PUT and DELETE."""
KUBELET = "kube-probe/"
"""How the kubelet's requests begin to name themselves. It asks whether the container is well, not the provider: an
outage that it saw would have it end the container after half a minute, and the outage with it."""
UNSCRIPTED = "unscripted_call"
"""The `type` of the error that a call gets which nobody scripted."""


class Backend(Protocol):
    """The one who answers requests that could be read: a script, a cassette or a provider."""

    @property
    def models(self) -> list[str]: ...

    async def respond(self, api: Api, request: Request, http: HttpRequest, sender: Sender) -> None: ...

    def refuse(self, what: str) -> None: ...

    @property
    def outage(self) -> Failure | None: ...

    def fail(self, outage: Failure | None) -> None: ...

    async def close(self) -> None: ...


class Scripted:
    """Answers by a script or a cassette, as the model that is handed in decides."""

    def __init__(self, model: ScriptedModel, report: Callable[[str], None] = lambda _: None) -> None:
        """`report` is told of each call that nobody scripted."""
        self._model = model
        self._report = report

    @property
    def models(self) -> list[str]:
        return self._model.models

    def refuse(self, what: str) -> None:
        self._model.refuse(what)
        self._report(what)

    @property
    def outage(self) -> Failure | None:
        return self._model.outage

    def fail(self, outage: Failure | None) -> None:
        """Answer everything with this from now on, or by the script again."""
        self._model.outage = outage

    async def close(self) -> None:
        """Hold nothing that would have to be closed."""

    async def respond(self, api: Api, request: Request, http: HttpRequest, sender: Sender) -> None:
        """Send what the model answers; a call that nobody scripted is an error that no client asks again after."""
        try:
            answer = self._model.answer(request)
        except Unscripted as error:
            self._report(str(error))
            await sender.json(400, api.failure(Failure(400, str(error), UNSCRIPTED)))
            return
        if await sender.pause(None if answer.hang else answer.delay):
            if isinstance(answer.result, Failure):
                result = answer.result
                await sender.json(result.status, api.failure(result), result.retry_after)
            elif request.stream:
                await sender.stream(api.events(request, answer.result), answer)
            else:
                await sender.whole(api.whole(request, answer.result), answer, sse.count(answer.result))
        if sender.gone and not sender.complete:
            self._model.abandoned.append(request)


def create_app(backend: Backend, closing: asyncio.Event | None = None) -> Starlette:
    """Return the application; `closing` is set when the server ends."""
    closing = closing or asyncio.Event()

    async def models(http: HttpRequest) -> Response:
        outage = backend.outage
        if outage and not http.headers.get("user-agent", "").startswith(KUBELET):
            headers = {} if outage.retry_after is None else {"retry-after": f"{outage.retry_after:g}"}
            return JSONResponse({"error": {"message": outage.message}}, outage.status, headers)
        entries = [_entry(name) for name in backend.models]
        return JSONResponse({"object": "list", "data": entries, "has_more": False})

    async def outage(http: HttpRequest) -> Response:
        """Begin an outage with the fields of a `Failure`, or end it; 409 of a backend that cannot fail."""
        try:
            backend.fail(Failure(**_object(await http.body())) if http.method == "PUT" else None)
        except CannotFail as error:
            return JSONResponse({"error": {"message": str(error)}}, status_code=409)
        return Response(status_code=204)

    async def model(http: HttpRequest) -> Response:
        name = http.path_params["name"]
        if name in backend.models:
            return JSONResponse(_entry(name))
        return JSONResponse({"error": {"type": "not_found_error", "message": f"no model {name}"}}, status_code=404)

    async def other(scope: Scope, receive: Receive, send: Send) -> None:
        http = HttpRequest(scope, receive)
        what = f"{http.method} {http.url.path} is no API that a scripted model has: it has {', '.join(APIS)}"
        if http.method == "POST":
            backend.refuse(what)
        await JSONResponse({"error": {"type": UNSCRIPTED, "message": what}}, status_code=404)(scope, receive, send)

    routes = [Route(OUTAGE, outage, methods=["PUT", "DELETE"]), Route("/v1/models", models)]
    routes += [Route("/v1/models/{name:path}", model)]
    posts = [Route(path, _Endpoint(api, backend, closing), methods=["POST"]) for path, api in APIS.items()]
    return Starlette(routes=[*routes, *posts, Mount("/", other)])


class _Endpoint:
    """One API, as an ASGI application."""

    def __init__(self, api: Api, backend: Backend, closing: asyncio.Event) -> None:
        self._api = api
        self._backend = backend
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http = HttpRequest(scope, receive)
        raw = await http.body()
        async with Sender(receive, send, self._closing) as sender:
            try:
                request = self._api.read(_object(raw), http.client.host if http.client else "")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                message = f"not a request of this API: {type(error).__name__}: {error}"
                self._backend.refuse(message)
                await sender.json(400, self._api.failure(Failure(400, message)))
                return
            await self._backend.respond(self._api, request, http, sender)


def _object(raw: bytes) -> Mapping[str, Any]:
    body = json.loads(raw)
    if not isinstance(body, dict):
        raise TypeError("the body is no JSON object")
    return body


def _entry(name: str) -> dict[str, Any]:
    about = {"object": "model", "type": "model", "owned_by": "pallas-testing"}
    return {"id": name, "display_name": name, "created": 0, "created_at": "1970-01-01T00:00:00Z", **about}

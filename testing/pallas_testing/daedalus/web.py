"""Daedalus over HTTP: the endpoints its user interface is made of."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pallas_testing.daedalus.chat import Blocked, NoAnswer, Progress, StatusLine
from pallas_testing.daedalus.client import Connection, Daedalus, Instance
from pallas_testing.daedalus.registry import Agent, NotARegistry


def create_app(daedalus: Daedalus) -> Starlette:
    """Return the application; it polls while it is being served."""

    @contextlib.asynccontextmanager
    async def polling(_app: Starlette) -> AsyncIterator[None]:
        polls = asyncio.create_task(daedalus.run())
        yield
        polls.cancel()

    pages = _Pages(daedalus)
    routes = [
        Route("/instances", pages.instances, methods=["GET"]),
        Route("/instances", pages.register, methods=["POST"]),
        Route("/workspaces/{workspace}/instances/{instance}", pages.attach, methods=["PUT"]),
        Route("/workspaces/{workspace}/instances/{instance}", pages.detach, methods=["DELETE"]),
        Route("/workspaces/{workspace}/agents", pages.agents, methods=["GET"]),
        Route("/workspaces/{workspace}/agents/{agent}/chat", pages.chat, methods=["POST"]),
        Route("/metrics", pages.metrics, methods=["GET"]),
    ]
    return Starlette(routes=routes, lifespan=polling, exception_handlers={HTTPException: _refused})


class _Pages:
    def __init__(self, daedalus: Daedalus) -> None:
        self._daedalus = daedalus

    async def instances(self, _request: Request) -> Response:
        return JSONResponse([_instance(each) for each in self._daedalus.instances.values()])

    async def register(self, request: Request) -> Response:
        """`{"registry_url": "http://..."}` -> the agents that were discovered."""
        url = await _field(request, "registry_url")
        try:
            instance = await self._daedalus.register(url)
        except NotARegistry as error:
            raise HTTPException(422, str(error)) from None
        return JSONResponse(_instance(instance), status_code=201)

    async def attach(self, request: Request) -> Response:
        workspace, instance = request.path_params["workspace"], request.path_params["instance"]
        try:
            made = await self._daedalus.attach(workspace, instance)
        except KeyError:
            raise HTTPException(404, f"no instance {instance} is registered") from None
        except NotARegistry as error:
            raise HTTPException(502, str(error)) from None
        return JSONResponse([self._status(each) for each in made])

    async def detach(self, request: Request) -> Response:
        self._daedalus.detach(request.path_params["workspace"], request.path_params["instance"])
        return Response(status_code=204)

    async def agents(self, request: Request) -> Response:
        """Return the agent status: badge, banner, and whether the input is enabled."""
        connections = self._daedalus.workspaces.get(request.path_params["workspace"], [])
        return JSONResponse([self._status(each) for each in connections])

    async def chat(self, request: Request) -> Response:
        """`{"message": "..."}` -> server-sent events: `status` for each progress, then `answer` or `failed`."""
        workspace, agent = request.path_params["workspace"], request.path_params["agent"]
        message = await _field(request, "message")
        try:
            health = self._daedalus.health(self._daedalus.connection(workspace, agent))
        except KeyError:
            raise HTTPException(404, f"no agent {agent} in this workspace") from None
        if health.blocks_chat:
            raise HTTPException(503, health.message)
        return StreamingResponse(self._events(workspace, agent, message), media_type="text/event-stream")

    async def metrics(self, _request: Request) -> Response:
        return Response(self._daedalus.metrics(), media_type="text/plain; version=0.0.4")

    def _status(self, connection: Connection) -> dict[str, Any]:
        health = self._daedalus.health(connection)
        return {
            **_described(connection.agent),
            "instance": connection.instance,
            "status": health.status,
            "message": health.message,
            "badge": health.badge,
            "banner": health.banner,
            "input": not health.blocks_chat,
        }

    async def _events(self, workspace: str, agent: str, message: str) -> AsyncIterator[bytes]:
        shown: asyncio.Queue[Progress | None] = asyncio.Queue()
        answer = asyncio.ensure_future(
            self._daedalus.chat(workspace, agent, message, StatusLine(shown.put_nowait)),
        )
        answer.add_done_callback(lambda _: shown.put_nowait(None))  # also where it was never asked
        try:
            while (line := await shown.get()) is not None:
                yield _event("status", message=line.message, spinner=line.indeterminate)
            yield _event("answer", text=await answer)
        except (Blocked, NoAnswer) as error:
            yield _event("failed", message=str(error))
        finally:
            answer.cancel()


def _instance(instance: Instance) -> dict[str, Any]:
    return {"name": instance.name, "agents": [_described(agent) for agent in instance.agents]}


def _described(agent: Agent) -> dict[str, Any]:
    return {
        "server_id": agent.server_id,
        "title": agent.title,
        "description": agent.description,
        "version": agent.version,
        "icon": agent.icon,
        "url": agent.url,
        "capabilities": dict(agent.capabilities),
    }


def _event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def _field(request: Request, name: str) -> str:
    try:
        value = (await request.json())[name]
    except (ValueError, KeyError, TypeError):
        raise HTTPException(422, f"needs a JSON object with {name!r}") from None
    if not isinstance(value, str):
        raise HTTPException(422, f"{name!r} must be text")
    return value


async def _refused(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse({"detail": getattr(error, "detail", "")}, status_code=status)

"""A registry's word about agents that registered themselves, in the documents of the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pallas_contract.documents import registry_api, server_json
from pallas_contract.documents.reason import OK
from pallas_contract.fleet.resolved import ResolvedFleet
from tests.served import served

NOW = datetime(2026, 11, 23, tzinfo=UTC)


class Registry:
    """`urls` has who is registered, by the name in the catalogue; `asked` is how often it was asked."""

    def __init__(self, fleet: ResolvedFleet) -> None:
        self._fleet = fleet
        self.urls: dict[str, str | None] = {}
        self.asked = 0

    def name(self, agent: str) -> str:
        return server_json.registry_name(self._fleet, agent)

    async def version(self, request: Request) -> Response:
        self.asked += 1
        found = {self.name(agent): agent for agent in self.urls}.get(request.path_params["name"])
        if found is None:
            return JSONResponse({"error": "not found"}, 404)
        return JSONResponse(self.entry(found, self.urls[found]))

    def entry(self, agent: str, url: str | None) -> dict[str, Any]:
        seed = server_json.registered(self._fleet, {"agent_id": agent, "version": "1", "url": url})
        dates = dict.fromkeys(("published", "updated", "changed"), NOW)
        registration = {"tools": ["fetch_recent_articles"]}
        return registry_api.entry(
            registry_api.server(seed, url), seed, **dates, health=("ok", OK), registration=registration
        )

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Yield its URL."""
        async with served(Starlette(routes=[Route("/v0.1/servers/{name:path}/versions/latest", self.version)])) as web:
            yield str(web.base_url).rstrip("/")

"""A whole service over a fleet that is made up: where the agents are and what they answer is the test's word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pallas_contract.documents.reason import NOT_FOUND
from pallas_contract.probe.probe import Result
from pallas_registry import settings
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.sighting import Discovery, Endpoint, OnSighting, Sighting
from pallas_registry.fleet_file import FleetWatcher
from pallas_registry.service import Service


class Fake:
    """A discovery and a prober: where each agent is, and what each endpoint answers."""

    def __init__(self) -> None:
        self.where: dict[str, tuple[Endpoint, ...]] = {}
        self.answers: dict[Endpoint, Result] = {}

    def put(self, agent: str, ip: str, result: Result | None = None) -> Endpoint:
        endpoint = Endpoint(f"http://{agent}/mcp", ip)
        self.where[agent] = (endpoint,)
        self.answers[endpoint] = result or Result("ok")
        return endpoint

    undeclared: tuple[str, ...] = ()

    async def sweep(self, agents: Sequence[str], tell: OnSighting) -> None:
        for agent in agents:
            found = self.where.get(agent)
            tell(agent, Sighting(found) if found else Sighting(problem=NOT_FOUND))

    async def check(self, endpoint: Endpoint, _before: Result | None) -> Result:
        return self.answers[endpoint]


@asynccontextmanager
async def running(
    folder: Path, time, fake: Fake, discovery: Discovery | None = None, **world: Any
) -> AsyncIterator[Service]:
    follower = FleetWatcher(folder / "agents.yaml")
    loaded = follower.first()
    processes = {"PALLAS_ADDRESSES": '{"harper": "127.0.0.1:9001"}'}
    env = processes if discovery is None else {"PALLAS_PLACEMENT": "container"}
    made = Dependencies(time.clock, time.now, time.sleep, discovery, fake.check, **world)
    service = Service(settings.read(env), loaded, follower, made)
    task = asyncio.create_task(service.run())
    try:
        yield service
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def states(service: Service) -> dict[str, tuple[str, str]]:
    found = {}
    for entry in json.loads(service.publisher.catalogue.document.body)["servers"]:
        health = entry["_meta"]["io.pallas-kit/health"]
        found[entry["server"]["name"].split("/")[1]] = (health["status"], health.get("message", ""))
    return found

"""Registered instances, workspaces, and the health of every connected agent (seed 000 section 3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from pallas_testing.daedalus import chat, health, registry
from pallas_testing.daedalus.chat import Blocked, StatusLine
from pallas_testing.daedalus.health import GAUGE, UNKNOWN, Health
from pallas_testing.daedalus.registry import Agent

ENV_INTERVAL = "DAEDALUS_MCP_HEALTH_INTERVAL"
INTERVAL = 60.0
"""Seconds between two checks, unless the environment says otherwise."""


def interval(env: Mapping[str, str] = os.environ) -> float:
    """Seconds between two checks.

    Raises:
        ValueError: the variable is no number above zero.
    """
    seconds = float(env.get(ENV_INTERVAL) or INTERVAL)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{ENV_INTERVAL} must be seconds above 0, not {seconds:g}")
    return seconds


@dataclass(slots=True)
class Instance:
    """A registered PallasInstance: its registry's URL, and the agents found there when it was last read."""

    name: str
    registry_url: str
    agents: tuple[Agent, ...]


@dataclass(frozen=True, slots=True)
class Connection:
    """An AgentConnection: one agent of an instance in a workspace."""

    instance: str
    agent: Agent


@dataclass(slots=True)
class Daedalus:
    """The client. `interval` is in seconds; `run` polls, everything else answers at once from what is known."""

    interval: float = field(default_factory=interval)
    check_timeout: float = health.TIMEOUT
    instances: dict[str, Instance] = field(default_factory=dict)
    workspaces: dict[str, list[Connection]] = field(default_factory=dict)
    _health: dict[tuple[str, str], Health] = field(default_factory=dict)
    _metrics: CollectorRegistry = field(default_factory=CollectorRegistry)
    _gauge: Gauge = field(init=False)

    def __post_init__(self) -> None:
        text = "Health of a connected agent: 1.0 ok, 0.5 degraded, 0.0 error."
        self._gauge = Gauge("daedalus_agent_health", text, ["instance", "agent"], registry=self._metrics)

    async def register(self, registry_url: str) -> Instance:
        """Read the registry and keep the instance, named after host and port.

        Raises:
            NotARegistry: there is none at this URL.
        """
        agents = await registry.fetch(registry_url)
        instance = Instance(urlsplit(registry_url).netloc, registry_url, agents)
        self.instances[instance.name] = instance
        return instance

    async def attach(self, workspace: str, instance: str) -> list[Connection]:
        """Read the registry again and connect the workspace to every agent there is now, well or not.

        Raises:
            KeyError: no such instance is registered.
            NotARegistry: its registry does not answer now.
        """
        known = await self.register(self.instances[instance].registry_url)
        made = [Connection(known.name, agent) for agent in known.agents]
        self.detach(workspace, instance)
        self.workspaces.setdefault(workspace, []).extend(made)
        await self._check(made)
        return made

    def detach(self, workspace: str, instance: str) -> None:
        """Remove all connections to this instance's agents from the workspace."""
        rest = [each for each in self.workspaces.get(workspace, []) if each.instance != instance]
        self.workspaces[workspace] = rest
        connected = {(each.instance, each.agent.server_id) for each in self._connections()}
        for gone in self._health.keys() - connected:
            del self._health[gone]
            self._gauge.remove(*gone)

    def health(self, connection: Connection) -> Health:
        """From memory; asks nobody."""
        return self._health.get((connection.instance, connection.agent.server_id), UNKNOWN)

    def connection(self, workspace: str, server_id: str) -> Connection:
        """Return the connection to an agent.

        Raises:
            KeyError: the workspace has no such agent.
        """
        for each in self.workspaces.get(workspace, []):
            if each.agent.server_id == server_id:
                return each
        raise KeyError(server_id)

    async def chat(self, workspace: str, server_id: str, message: str, line: StatusLine | None = None) -> str:
        """Return the agent's answer.

        Raises:
            KeyError: the workspace has no such agent.
            Blocked: its cached health is `error`; it was not asked.
            chat.NoAnswer: it was asked and failed.
        """
        found = self.connection(workspace, server_id)
        if self.health(found).blocks_chat:
            raise Blocked(self.health(found))
        return await chat.ask(found.agent.url, server_id, message, line or StatusLine())

    async def run(self, checked: Callable[[], None] = lambda: None) -> None:
        """Check all connected agents every interval, until cancelled; `checked` is called after each round."""
        while True:
            await self._check(self._connections())
            checked()
            await asyncio.sleep(self.interval)

    def metrics(self) -> bytes:
        """Return the gauge in Prometheus' text format."""
        return generate_latest(self._metrics)

    def _connections(self) -> list[Connection]:
        return [each for connections in self.workspaces.values() for each in connections]

    async def _check(self, connections: list[Connection]) -> None:
        """All at once, so that one who hangs delays no other."""
        urls = {(each.instance, each.agent.server_id): each.agent.url for each in connections}
        found = await asyncio.gather(*(health.check(url, timeout=self.check_timeout) for url in urls.values()))
        connected = {(each.instance, each.agent.server_id) for each in self._connections()}
        for key, said in zip(urls, found, strict=True):
            if key in connected:  # it may have been detached meanwhile
                self._health[key] = said
                self._gauge.labels(*key).set(GAUGE[said.status])

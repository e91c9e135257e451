"""A fleet as flat facts, dotted key -> value: what its users can tell from outside, and every key of the file. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pallas_contract import names
from pallas_contract.documents import server_json
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses, credentials

Value = str | int | float | bool | None
_NAMES = frozenset({"agents", "callers", "functions", "reach", "registered", "subjects"})
"""Lists of names, whose order means nothing. Of all others, such as arguments, the entries are never part of a key:
keys are shown."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one side; `whole` is False for a registry, which has what callers see of agents and no more."""

    values: Mapping[str, Value]
    whole: bool = True
    placement: addresses.Placement = "container"
    """Where the fleet of a registry runs: as processes each agent has an address, in containers what is published."""


def of_fleet(fleet: ResolvedFleet, placement: addresses.Placement) -> Facts:
    """Return the facts of a fleet file, with the addresses that it has as `placement`."""
    data: dict[str, Any] = {
        "name": fleet.name,
        "version": fleet.version,
        "registry": {
            **fleet.registry.model_dump(mode="json", exclude={"publish"}),
            "publish": _listens_on(fleet.registry.publish),
            "port": fleet.registry_port,
            "url": addresses.public_url(fleet, names.REGISTRY, fleet.registry_port) if fleet.registry.publish else None,
        },
        "networks": fleet.networks.model_dump(mode="json"),
        "image": fleet.image.model_dump(mode="json"),
        "telemetry": fleet.telemetry.model_dump(mode="json") if fleet.telemetry else None,
        "services": {name: service.model_dump(mode="json") for name, service in fleet.services.items()},
        "agents": {name: _agent(fleet, name, placement) for name in fleet.agents},
    }
    if fleet.gateway:
        gateway = fleet.gateway.model_dump(mode="json", exclude={"publish"})
        gateway["access"]["protected"] = bool(fleet.gateway.access.tokens or fleet.gateway.access.jwt)
        publish = _listens_on(fleet.gateway.publish)
        data["gateway"] = {**gateway, "publish": publish, "url": addresses.gateway_url(fleet, placement)}
    return Facts(dict(_flat(data)), placement=placement)


def _agent(fleet: ResolvedFleet, name: str, placement: addresses.Placement) -> dict[str, Any]:
    agent = fleet.agents[name]
    data = agent.model_dump(mode="json", exclude={"publish", "name", "title", "description", "icons"})
    data["access"]["protected"] = credentials.protected(fleet, name)
    url = addresses.agent_url(fleet, name, placement) or ""
    publish = {"publish": _listens_on(agent.publish)}
    return {**data, **publish, **_published(server_json.server(fleet, name, None, placement), url)}


def _listens_on(publish: bool | str | None) -> str:
    """Return the address that something is published on, where that is not this machine's own: no URL tells it."""
    address = addresses.bind_address(publish) if publish else addresses.LOOPBACK
    return "" if address == addresses.LOOPBACK else address


def of_registry(document: Mapping[str, Any]) -> Facts:
    """Return the facts in the document of a running registry (seed 000, section 1).

    Agents that registered themselves (seed 003) are left out: no fleet file has them.

    Raises:
        KeyError, TypeError, AttributeError: it is none.
    """
    agents: dict[str, Any] = {}
    placement: addresses.Placement = "local"
    for entry in document["servers"]:
        if server_json.REGISTRATION_META in entry.get("_meta", ()):
            continue
        server = entry["server"]
        name = server["name"].rpartition("/")[2]
        inside = f"http://{name}:{names.CONTAINER_PORT}{names.MCP_PATH}"
        urls = [remote["url"] for remote in server["remotes"]]
        if inside in urls:
            placement = "container"
        agents[name] = _published(server, next((url for url in urls if url != inside), ""))
    return Facts(dict(_flat({"agents": agents})), whole=False, placement=placement)


def _published(server: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return what callers know of an agent from its entry in the registry."""
    keys = {"title": "", "description": "", "icons": []}
    return {"registry_name": server["name"], "url": url} | {key: server.get(key, none) for key, none in keys.items()}


def callers_part(facts: Facts) -> Facts:
    """Return what a registry would have of these facts; agents are under their host names there."""
    fields = ("registry_name", "url", "title", "description", "icons")
    values = {}
    for key, value in facts.values.items():
        section, _, rest = key.partition(".")
        name, _, field = rest.partition(".")
        if section == "agents" and field.partition(".")[0] in ("", *fields):
            values[".".join(filter(None, (section, names.slug(name), field)))] = value
    return Facts(values, whole=False, placement=facts.placement)


def _flat(data: Any, path: str = "") -> Iterator[tuple[str, Value]]:
    """Yield each value with its key; a section stands for itself, and a list is one value.

    A list of names is a section with an entry per name: one that is added or goes is a change by itself.
    """
    if isinstance(data, list):
        if path.rpartition(".")[2] not in _NAMES:
            yield path, json.dumps(data, sort_keys=True) if data else ""
            return
        data = dict.fromkeys(data, True)
    if not isinstance(data, Mapping):
        yield path, data
        return
    if path:
        yield path, True
    for key, value in data.items():
        yield from _flat(value, f"{path}.{key}" if path else key)

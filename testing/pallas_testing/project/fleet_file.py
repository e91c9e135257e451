"""agents.yaml as far as a test has to know it: who is in the fleet, who calls whom, and which port is whose.

What is wrong with the file is for the kit's commands to say; here a file that cannot be understood has no members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

REGISTRY = "registry"
"""The registry's name among the members."""
DEFAULT_REGISTRY_PORT = 24200
"""Seed 001, `registry_port`."""
_MODELS = ("openai", "anthropic")
"""What a service `provides` that is a model."""
GATEWAY = "gateway"
"""The gateway's name among the members."""
DEFAULT_GATEWAY_PORT = 24190


class NoFleetFile(Exception):
    """There is no agents.yaml to test, or it is no YAML; the text says where and what to do."""


@dataclass(frozen=True, slots=True)
class FleetFile:
    """The members of a fleet by their names in agents.yaml.

    `agents` and `services` map names to ports of this machine, `calls` agents to the members that they depend on. None
    stands where the file gives no port, or one inside the container of an image, which is the image's affair. `gateway`
    is its port, None where the fleet has none.
    """

    path: Path
    name: str
    registry_port: int
    agents: Mapping[str, int | None]
    services: Mapping[str, int | None]
    calls: Mapping[str, tuple[str, ...]]
    models: tuple[str, ...] = ()
    """Services that provide a model."""
    gateway: int | None = None
    behind_gateway: tuple[str, ...] = ()
    """Members that the gateway calls: the agents it leads to, then all that are reached `through` it besides."""
    inside: Mapping[str, int] = field(default_factory=dict)
    """Ports inside containers of images, by service."""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of all members: the agents, the services, the gateway where there is one, the registry."""
        return (*self.agents, *self.services, *([GATEWAY] if self.gateway else []), REGISTRY)

    def port(self, member: str) -> int | None:
        """Return the port of a member as the file has it.

        Raises:
            KeyError: there is no such member.
        """
        if member == GATEWAY and self.gateway:
            return self.gateway
        return self.registry_port if member == REGISTRY else {**self.agents, **self.services}[member]


def slug(name: str) -> str:
    """Return the name of a member as host names and the registry have it (seed 001, Registry Name Construction)."""
    return name.replace("_", "-")


def read(path: Path) -> FleetFile:
    """Read the file.

    Raises:
        NoFleetFile: it is not there, or no YAML.
    """
    try:
        tree = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise NoFleetFile(f"{path}: {error.strerror}. Name another one with --fleet-file") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise NoFleetFile(f"{path} is no YAML: {error}") from None
    top = _mapping(tree)
    agents = {str(name): _mapping(entry) for name, entry in _mapping(top.get("agents")).items()}
    services = {str(name): _mapping(entry) for name, entry in _mapping(top.get("services")).items()}
    return FleetFile(
        path=path,
        name=str(top.get("name", "")),
        registry_port=_port(top.get("registry_port")) or DEFAULT_REGISTRY_PORT,
        agents={name: _port(entry.get("port")) for name, entry in agents.items()},
        services={name: None if "image" in entry else _port(entry.get("port")) for name, entry in services.items()},
        gateway=_gateway_port(top.get(GATEWAY)),
        behind_gateway=_behind_gateway(_mapping(top.get(GATEWAY)), {**agents, **services}),
        inside={
            name: port for name, entry in services.items() if "image" in entry and (port := _port(entry.get("port")))
        },
        calls={name: tuple(map(str, entry.get("depends_on") or ())) for name, entry in agents.items()},
        models=tuple(name for name, entry in services.items() if entry.get("provides") in _MODELS),
    )


def nearest(folder: Path) -> Path:
    """Return the agents.yaml of a folder, or of the first one above that has one.

    Raises:
        NoFleetFile: none has.
    """
    for parent in (folder, *folder.parents):
        if (parent / "agents.yaml").is_file():
            return parent / "agents.yaml"
    message = f"no agents.yaml in {folder} or above. Name it with --fleet-file, or in the fixture `fleet_file`"
    raise NoFleetFile(message)


def _gateway_port(section: Any) -> int | None:
    return (_port(section.get("port")) or DEFAULT_GATEWAY_PORT) if isinstance(section, Mapping) else None


def _behind_gateway(section: Mapping[Any, Any], members: Mapping[str, Mapping[Any, Any]]) -> tuple[str, ...]:
    through = (name for name, entry in members.items() if entry.get("through") == GATEWAY)
    return tuple(dict.fromkeys((*map(str, section.get("agents") or ()), *through)))


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _port(value: Any) -> int | None:
    return value if isinstance(value, int) else None

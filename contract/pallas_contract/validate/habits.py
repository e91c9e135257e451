"""Keys that people write by habit, from other tools or from fast-agent, and where the kit expects them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_CODE = "it belongs to the agent's code: `{0}` of its card, or `{0}=` of its decorator"
_MODEL = f"{_CODE.format('model')}; for all agents `default_model` in fastagent.config.yaml"
_SERVERS = f"{_CODE.format('servers')}; members of the fleet also stand in `depends_on`"
_INSTRUCTION = "it belongs to the agent's code: the text of its card, or `instruction=` of its decorator"
_SECRETS = "write `defaults: {secrets: {NAME: {file: secrets/NAME.txt}}}`, or `secrets` below one agent"
_CONFIG = "it belongs to fastagent.config.yaml: `mcp: {servers: ...}`"
_ENV = "write `env: {NAME: value}`"

_RESOURCES = "write `resources: {cpus: 0.5, memory: 512Mi}`"
_ANYWHERE = {
    "env_file": "a file `.env` beside agents.yaml is read by all agents; for one alone write `env: {NAME: value}`, "
    "and `secrets` for keys",
    "restart": "take it away: whatever ends is started again",
    "networks": "take it away: `depends_on` of the caller opens the way",
    "build": "take it away: `pallas-gen build` makes what is needed; an image of yours is `image: NAME:TAG`",
    "container_name": "take it away: the key above it is the host name",
    "hostname": "take it away: the key above it is the host name",
    "deploy": "write `replicas: 2` and `resources: {cpus: 0.5, memory: 512Mi}`",
    "memory": "write `resources: {memory: 512Mi}`",
    "mem_limit": "write `resources: {memory: 512Mi}`",
    "cpus": "write `resources: {cpus: 0.5}`",
}
"""Keys of compose and Kubernetes for one program, be it an agent or a service."""

_TOP = {
    "volumes": "what an agent needs lies beside agents.yaml; a service that keeps something has `state: true`",
    "secrets": _SECRETS,
    "env": "write `defaults: {env: {NAME: value}}`, or `env` below one agent",
    "environment": "write `defaults: {env: {NAME: value}}`, or `env` below one agent",
    "model": "write `default_model` in fastagent.config.yaml",
    "default_model": "it belongs to fastagent.config.yaml",
    "mcp": _CONFIG,
    "mcpServers": _CONFIG,
    "mcp_servers": _CONFIG,
    "servers": f"{_CONFIG}; servers that the fleet brings along are `services`",
    "port": "write `registry_port`, and `port` below each agent",
}
_AGENT = _ANYWHERE | {
    "command": "write `module: agents.NAME` for Python, or `card: agents/NAME.md`",
    "healthcheck": "take it away: agents are asked in MCP",
    "model": _MODEL,
    "servers": _SERVERS,
    "mcp_servers": _SERVERS,
    "mcpServers": _SERVERS,
    "tools": _CODE.format("tools"),
    "function_tools": _CODE.format("function_tools"),
    "request_params": _CODE.format("request_params"),
    "instruction": _INSTRUCTION,
    "instructions": _INSTRUCTION,
    "prompt": _INSTRUCTION,
    "system_prompt": _INSTRUCTION,
    "environment": _ENV,
    "file": "write `module: agents.NAME` for Python, or `card: agents/NAME.md`",
    "path": "write `module: agents.NAME` for Python, or `card: agents/NAME.md`",
    "name": "the key above it is the agent's name; `title` is what people see",
    "ports": "write `port: 24201`",
    "volumes": "what an agent needs lies beside agents.yaml, or in an image of yours",
}
_REGISTRY = {"port": "write `registry_port: 24200` at the top of the file", "host": "write `host: NAME` at the top"}
_GATEWAY = {"environment": _ENV, "ports": "write `port: 24190`"}
_SERVICE = _ANYWHERE | {
    "environment": _ENV,
    "ports": "write `port: 24211`",
    "deploy": _RESOURCES,
    "volumes": "write `files: [PATH]` for what it reads, and `state: true` for what it keeps",
    "healthcheck": "write `health: {path: /healthz}` or `health: {command: [PROGRAM]}`, for an `image`",
}
_INSIDE = {
    ("resources", "limits"): f"{_RESOURCES}, which are limits",
    ("resources", "requests"): f"{_RESOURCES}, which are limits; requests are values of the chart",
    ("resources", "reservations"): f"{_RESOURCES}, which are limits",
    ("resources", "cpu"): "write `cpus: 0.5`",
    ("depends_on", "condition"): "take it away: who depends on something waits until it is ready, "
    "but with `required: false`",
}
"""Keys by the section that they stand in, however deep."""


def unknown(path: Sequence[str | int]) -> str:
    """Return where a key that is unknown at `path` belongs; empty where nobody would expect it."""
    key = str(path[-1])
    where = tuple(path[:-1])
    if not where:
        return _TOP.get(key, "what several agents have in common stands in `defaults`" if key.startswith("x-") else "")
    if hint := next((_INSIDE[part, key] for part in map(str, where[-2:]) if (part, key) in _INSIDE), ""):
        return hint
    if "secrets" in where[-2:-1] and key in ("external", "environment", "valueFrom"):
        return f"write `file: secrets/{where[-1]}.txt`; on Kubernetes a Secret of yours takes its place"
    if where[0] == "agents" and len(where) == 2:
        return _AGENT.get(key, "")
    if where[0] == "services" and len(where) == 2:
        return _SERVICE.get(key, "")
    return (
        {"registry": _REGISTRY, "defaults": _AGENT, "gateway": _GATEWAY}.get(str(where[0]), {}).get(key, "")
        if len(where) == 1
        else ""
    )


def path_of(path: Sequence[str | int], value: Any) -> str:
    """Return a module for the path of its file, empty for anything else."""
    if not path or path[-1] != "module" or not isinstance(value, str) or not re.search(r"[/\\]|\.py$", value):
        return ""
    return f"write `{re.sub(r'[/\\\\]+', '.', value.removesuffix('.py').removeprefix('./'))}`"


def no_list(path: Sequence[str | int]) -> str:
    """Return how to write a list that was written as something else; a value may be a secret and is not repeated."""
    return f"write `{path[-1]}: [NAME]`" if path and path[-1] in ("agents", "services", "calls", "operators") else ""


def no_mapping(path: Sequence[str | int], value: Any) -> str:
    """Return how to write a mapping that was written as something else; a value may be a secret and is not repeated."""
    name = str(path[-1]) if path else ""
    if path[-2:-1] in (("secrets",), ("tokens",)):
        return f"put the value into a file, and write `{name}: {{file: secrets/{name}.txt}}`"
    if name in ("secrets", "tokens"):
        return f"write `{name}: {{NAME: {{file: secrets/NAME.txt}}}}`"
    if name in ("agents", "services") and isinstance(value, list):
        return f"write each name as a key: `{name}: {{scout: {{module: agents.scout, port: 24201}}}}`"
    if name in ("env", "labels") and isinstance(value, list):
        return f"write `{name}: {{NAME: value}}`"
    if len(path) == 2 and path[0] in ("agents", "services") and not isinstance(value, Mapping):
        return f"write `{name}: {{module: agents.{name}, port: 24201}}`"
    return ""

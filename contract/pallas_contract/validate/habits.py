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

_TOP = {
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
_AGENT = {
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
    "memory": "write `resources: {memory: 512Mi}`",
    "volumes": "what an agent needs lies beside agents.yaml, or in an image of yours",
}
_REGISTRY = {"port": "write `registry_port: 24200` at the top of the file", "host": "write `host: NAME` at the top"}
_GATEWAY = {"environment": _ENV, "ports": "write `port: 24190`"}
_SERVICE = {"environment": _ENV, "ports": "write `port: 24211`"}


def unknown(path: Sequence[str | int]) -> str:
    """Return where a key that is unknown at `path` belongs; empty where nobody would expect it."""
    key = str(path[-1])
    where = tuple(path[:-1])
    if not where:
        return _TOP.get(key, "")
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

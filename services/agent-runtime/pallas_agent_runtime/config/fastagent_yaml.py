"""The two fast-agent files of the project -> the one file this process gives to fast-agent. Pure.

`${NAME}` references stay references: fast-agent expands them. What a user wrote literally goes along as it is,
into a file that only this user can read and that goes away with the process.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pallas_agent_runtime.config import interpolation
from pallas_contract import names
from pallas_contract.fleet import fastagent
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Where, refuse_errors

Data = dict[str, Any]

OPENAI_BASE_URL = "https://api.openai.com/v1"
"""Default of seed 001, `.env`."""
NO_KEY = "not-set"
"""Stands for a missing key: an agent starts without one (seed 001, Startup Preflight: warn-only), its calls fail."""
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Providers that preflight knows, with the variable of their key."""
ADDRESSES = {"openai": names.ENV_OPENAI_BASE_URL, "anthropic": "ANTHROPIC_BASE_URL"}
"""The same, with the variable of their address."""
_OURS = ("command", "args", "transport", "protocol_mode")
"""What the kit decides for a peer: `legacy` would keep a session, which all whom this agent answers would share."""
MAX_RETRIES = 3
DEFAULT_RETRIES = 1
"""fast-agent waits 10 s, 20 s, ... between attempts while the caller hears nothing."""


@dataclass(frozen=True, slots=True)
class Built:
    """The configuration for fast-agent, and what to tell the user about how it came to be."""

    data: Data
    notes: tuple[str, ...]


def build(
    config: Source | None,
    secrets: Source | None,
    provider: str,
    peers: Mapping[str, str],
    environ: Mapping[str, str],
    presented: Mapping[str, str] | None = None,
) -> Built:
    """Merge both files and the fleet's peers. `provider` is the active one, whose secrets must be there.

    `presented` maps peer -> variable with the token that this agent shows to it.

    Raises:
        Refused: the active provider's section needs a variable that is not set, or its address is none.
    """
    notes: list[str] = []
    problems: list[Problem] = []
    data: Data = {}
    for tree in filter(None, (config, secrets)):
        data = _merge(data, _usable(tree, provider, environ, problems, notes))
    problems += _address(config, secrets, data, provider, environ)
    refuse_errors(problems)
    data.pop("model_capabilities", None)  # the kit's own key; published in the registry, unknown to fast-agent
    _servers(data, peers, presented or {}, notes)
    _provider(data, provider, environ)
    _runtime(data, notes)
    return Built(data, tuple(notes))


def _usable(tree: Source, provider: str, environ: Mapping[str, str], problems: list[Problem], notes: list[str]) -> Data:
    """The data of one file without what cannot be expanded."""
    drop: set[interpolation.Path_] = set()
    for path, variable in interpolation.unset(tree.data, environ):
        if path[-1] == "base_url":  # every provider has a default of its own
            drop.add(path)
        elif path[0] == provider:
            hint = f"set it in the environment or in {names.DOTENV_FILE}"
            problems.append(tree.problem(*path, message=f"the variable {variable} is not set", hint=hint))
        else:
            notes.append(f"{tree.where(*path)}: the variable {variable} is not set; the setting is left out")
            if path[-1] != "url":  # a server without a URL is no server; with this one it is an unreachable one
                drop.add(path)
    data: Data = interpolation.without(tree.data, frozenset(drop))
    return data


def _address(
    config: Source | None, secrets: Source | None, data: Data, provider: str, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """A problem when the active provider cannot have the address it is given: a turn would send its key somewhere."""
    if provider not in ADDRESSES:
        return
    url, variable = url_of(data, provider, environ), ADDRESSES[provider]
    if not url or not (wrong := fastagent.flaw(url)):
        return
    message, hint = wrong, "write https://HOST/v1 or http://HOST:PORT/v1"
    for tree in filter(None, (secrets, config)):
        if isinstance(tree.data.get(provider), dict) and tree.data[provider].get("base_url"):
            yield tree.problem(provider, "base_url", message=message, hint=hint)
            return
    yield Problem(Where(f"${variable}"), message, hint)


def url_of(data: Mapping[str, Any], provider: str, environ: Mapping[str, str]) -> str:
    """The address of a provider that `ADDRESSES` knows, expanded; empty when none is given."""
    section = data.get(provider) or {}
    written = interpolation.expand(str(section.get("base_url") or ""), environ)
    return written or environ.get(ADDRESSES[provider], "")


def _servers(data: Data, peers: Mapping[str, str], presented: Mapping[str, str], notes: list[str]) -> None:
    """Every server is connected when first needed, so that a dead one stops no start; peers are where the plan says."""
    servers = _section(_section(data, "mcp"), "servers")
    for entry in servers.values():
        entry["load_on_start"] = False
    for name, url in peers.items():
        written = servers.get(name, {})
        if written.get("url", url) != url:
            notes.append(f"mcp.servers.{name}.url: {written['url']} is replaced by the fleet's {url}")
        kept = {key: value for key, value in written.items() if key not in _OURS}
        servers[name] = {**kept, "transport": "http", "url": url, "load_on_start": False}
        if name in presented:
            _identify(servers[name], presented[name])


def _identify(server: Data, variable: str) -> None:
    """This agent's own token for a member of the fleet, by reference; it replaces any other that was written there."""
    server.pop("access_token", None)
    kept = {key: text for key, text in _section(server, "headers").items() if key.lower() != "authorization"}
    server["headers"] = {**kept, "Authorization": f"Bearer ${{{variable}}}"}


def _provider(data: Data, provider: str, environ: Mapping[str, str]) -> None:
    """What the active provider needs to start at all."""
    if provider in KEYS:
        section = _section(data, provider)
        if not section.get("api_key") and not environ.get(KEYS[provider]):
            section["api_key"] = NO_KEY
    if provider == "openai" or "openai" in data:
        default = f"${{{names.ENV_OPENAI_BASE_URL}:{OPENAI_BASE_URL}}}"
        section = _section(data, "openai")
        section["base_url"] = section.get("base_url") or default


def _runtime(data: Data, notes: list[str]) -> None:
    """No terminal, no files, no history and no traces of fast-agent's own: the runtime does all that itself."""
    data["session_history"] = False
    if _section(data, "otel").get("enabled"):
        notes.append("otel: is left out, because its spans hold prompts; set `telemetry` in agents.yaml instead")
    data["otel"] = {"enabled": False}
    quiet = {"type": "none", "progress_display": False, "show_chat": False, "show_tools": False, "streaming": "none"}
    data["logger"] = {**_section(data, "logger"), **quiet}
    retries = data.get("llm_retries", DEFAULT_RETRIES)
    data["llm_retries"] = min(retries, MAX_RETRIES) if isinstance(retries, int) else DEFAULT_RETRIES


def endpoints(data: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, URL and headers, all expanded, of every HTTP server of the built configuration."""
    for name, entry in data["mcp"]["servers"].items():
        if isinstance(entry.get("url"), str):
            written = entry.get("headers") or {}
            headers = {key: interpolation.expand(str(value), environ) for key, value in written.items()}
            token = entry.get("access_token")
            if isinstance(token, str) and "authorization" not in {key.lower() for key in headers}:
                headers["Authorization"] = f"Bearer {interpolation.expand(token, environ)}"
            yield name, interpolation.expand(entry["url"], environ), headers


def _section(data: Data, key: str) -> Data:
    """`data[key]` as a mapping, created or replaced when it is anything else."""
    if not isinstance(data.get(key), dict):
        data[key] = {}
    section: Data = data[key]
    return section


def _merge(base: Data, over: Data) -> Data:
    merged = copy.deepcopy(base)
    for key, value in over.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged

"""The two fast-agent files of the project -> the one file this process gives to fast-agent. Pure.

`${NAME}` references stay references: fast-agent expands them. What a user wrote literally goes along as it is,
into a file that only this user can read and that goes away with the process.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pallas_agent_runtime.config import interpolation
from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent, providers
from pallas_contract.fleet.providers import ModelProvider
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Where, refuse_errors

Data = dict[str, Any]

NO_KEY = "not-set"
"""Stands for a missing key: an agent starts without one (seed 001, Startup Preflight: warn-only), its calls fail."""
_OURS = ("command", "args", "target", "transport", "protocol_mode")
"""What the kit decides for a peer: `legacy` would keep a session, which all whom this agent answers would share."""
NO_SKILLS = "/dev/null/skills"
"""A folder that cannot be: without any, fast-agent searches the working directory and its home."""
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
    *,
    prefix: str,
    peers: Mapping[str, str],
    environ: Mapping[str, str],
    presented: Mapping[str, str] | None = None,
    skills: Sequence[str] = (),
) -> Built:
    """Merge both files and the fleet's peers. `prefix` is that of the default model, empty for a bare name.

    `presented` maps peer -> variable with the token that this agent shows to it; `skills` are absolute paths of the
    folders that agents find skills in unless their definition names others.

    Raises:
        Refused: the active provider's address is none.
    """
    notes: list[str] = []
    data: Data = {}
    for tree in filter(None, (config, secrets)):
        data = _merge(data, _usable(tree, environ, notes))
    refuse_errors(_addresses(config, secrets, data, prefix=prefix, environ=environ))
    data.pop("model_capabilities", None)  # the kit's own key; published in the registry, unknown to fast-agent
    _servers(data, peers, presented or {}, notes)
    _providers(data, prefix, environ)
    _runtime(data, notes)
    _section(data, "skills")["directories"] = list(skills) or [NO_SKILLS]
    return Built(data, tuple(notes))


def _usable(tree: Source, environ: Mapping[str, str], notes: list[str]) -> Data:
    """Return the data of one file without what cannot be expanded; no variable stops an agent (seed 001, Preflight)."""
    drop: set[interpolation.Path_] = set()
    for path, variable in interpolation.unset(tree.data, environ):
        if path[-1] == "base_url":  # every provider has a default of its own
            drop.add(path)
        else:
            notes.append(f"{tree.where(*path)}: the variable {variable} is not set; the setting is left out")
            if path[-1] not in (
                "url",
                "target",
            ):  # a server without a URL is no server; with this one it is an unreachable one
                drop.add(path)
    data: Data = interpolation.without(tree.data, frozenset(drop))
    return data


def _addresses(
    config: Source | None, secrets: Source | None, data: Data, *, prefix: str, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield a problem when a provider cannot have the address it is given: a turn would send its key somewhere.

    Only the active one is held to it; of a bare model name it is not known here which one that is.
    """
    hint = "write https://HOST/v1 or http://HOST:PORT/v1"
    for provider in providers.CHECKED:
        sections = (prefix, provider.name) if prefix in provider.prefixes else (provider.name,)
        url = url_of(data, provider, environ, sections)
        if (prefix and prefix not in provider.prefixes) or not url or not (flaw := fastagent.flaw(url)):
            continue
        # The secrets file first: it is merged over the other one, so that its address is in force.
        candidates = [(tree, name) for name in sections for tree in (secrets, config) if tree]
        tree, name = next(
            ((tree, name) for tree, name in candidates if setting(tree.data, (name,), "base_url")), (None, "")
        )
        where = tree.where(name, "base_url") if tree else Where(f"${provider.url_variable}")
        yield Problem(where, flaw, hint, code=Code.WRONG_URL)


def setting(data: Mapping[str, Any], sections: Iterable[str], key: str) -> str:
    """Return the first text under `key` in these sections, as it is written; empty when there is none."""
    written = (data[name].get(key) for name in sections if isinstance(data.get(name), dict))
    return next((str(text) for text in written if text), "")


def url_of(
    data: Mapping[str, Any], provider: ModelProvider, environ: Mapping[str, str], sections: Iterable[str]
) -> str:
    """Return the address of a provider, expanded; empty when neither a file nor the environment gives one."""
    written = interpolation.expand(setting(data, sections, "base_url"), environ)
    return written or environ.get(provider.url_variable, "")


def _servers(data: Data, peers: Mapping[str, str], presented: Mapping[str, str], notes: list[str]) -> None:
    """Every server is connected when first needed, so that a dead one stops no start; peers are where the plan says."""
    servers = _section(_section(data, "mcp"), "servers")
    for entry in servers.values():
        entry["load_on_start"] = False
    for name, url in peers.items():
        written = servers.get(name, {})
        for key in ("url", "target"):
            if written.get(key, url) != url:
                notes.append(f"mcp.servers.{name}.{key}: {written[key]} is replaced by the fleet's {url}")
        others = {key: value for key, value in written.items() if key not in _OURS}
        servers[name] = {**others, "transport": "http", "url": url, "load_on_start": False}
        if name in presented:
            _identify(servers[name], presented[name])
    for name in programs(data):
        # the runtime asks by itself, and takes an error for an answer: after three fast-agent would end the program
        servers[name].setdefault("ping_interval_seconds", 0)


def _identify(server: Data, variable: str) -> None:
    """Return this agent's token for a member of the fleet, by reference; it replaces any other written there."""
    server.pop("access_token", None)
    # Header names are case-insensitive (RFC 9110, section 5.1).
    others = {key: text for key, text in _section(server, "headers").items() if key.lower() != "authorization"}
    server["headers"] = {**others, "Authorization": f"Bearer ${{{variable}}}"}


def _providers(data: Data, prefix: str, environ: Mapping[str, str]) -> None:
    """Add what an agent needs to start at all.

    Every provider gets it: its code may name another model than the default one.
    """
    for provider in providers.CHECKED:
        if not setting(data, provider.prefixes, "api_key") and not environ.get(provider.key_variable):
            for name in (provider.name, *(alias for alias in provider.aliases if alias in data)):
                _section(data, name)["api_key"] = NO_KEY
        # fast-agent's Responses API reads no variable for its WebSocket, which would go to the provider with the key.
        asked = provider.name in data or prefix in provider.prefixes or environ.get(provider.url_variable)
        if provider.explicit_url and asked:
            section = _section(data, provider.name)
            section["base_url"] = section.get("base_url") or f"${{{provider.url_variable}:{provider.default_url}}}"


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


@dataclass(frozen=True, slots=True)
class HttpServer:
    """An MCP server that is called by HTTP, everything expanded."""

    url: str
    headers: Mapping[str, str]
    sse: bool = False
    oauth: bool = False
    """Whether fast-agent logs in by itself (`auth`), so that a probe without a token is refused and a turn is not."""


def http_servers(data: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, HttpServer]:
    """Return every HTTP server of the built configuration by name."""
    servers: dict[str, HttpServer] = {}
    for name, entry in data["mcp"]["servers"].items():
        texts = {key: interpolation.expand(text, environ) for key, text in entry.items() if isinstance(text, str)}
        endpoint = fastagent.endpoint(texts)
        if endpoint is None:
            continue
        headers = {
            key: interpolation.expand(str(value), environ) for key, value in (entry.get("headers") or {}).items()
        }
        token = texts.get("access_token")
        if token is not None and "authorization" not in {key.lower() for key in headers}:
            headers["Authorization"] = f"Bearer {token}"
        login = entry.get("auth")
        oauth = isinstance(login, Mapping) and login.get("oauth") is not False
        servers[name] = HttpServer(endpoint.url, headers, endpoint.sse, oauth)
    return servers


def programs(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the MCP servers that an agent starts itself."""
    servers = data["mcp"]["servers"].items()
    return frozenset(
        name
        for name, entry in servers
        if fastagent.endpoint(entry) is None and ("command" in entry or "target" in entry)
    )


def nowhere(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the MCP servers that can be neither called nor started: fast-agent passes over them."""
    servers = data["mcp"]["servers"].items()
    ways = {"command", "target", "connector_id"}
    return frozenset(name for name, entry in servers if fastagent.endpoint(entry) is None and not ways & entry.keys())


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

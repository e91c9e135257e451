"""Why an agent's container may reach the world: what its own code uses outside of the fleet. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet import providers
from pallas_contract.fleet.access_model import Access
from pallas_contract.fleet.fastagent import VARIABLE, Config
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet

EXPLICIT = "`egress: true`"
_NO_MODEL = frozenset({"a2a", "chain", "evaluator_optimizer", "maker", "parallel"})
"""Kinds of agents that only hand on: the agents they name have the models."""


def reasons(fleet: ResolvedFleet, config: Config, agent: ResolvedAgent, definitions: Definitions) -> tuple[str, ...]:
    """Return everything outside of the fleet that `agent` uses, in words; nothing where it needs no way out.

    `egress` of the fleet file has the last word. Servers come from the agent's own code; where that does not say them
    as literals, all of the configuration count, and the reason says why.
    """
    if agent.egress is not None:
        return (EXPLICIT,) if agent.egress else ()
    models = [f"its model {model}" for model in _models(fleet, config, agent, definitions)]
    return (*sorted(set(models)), *_servers(fleet, config, definitions), *keys(agent.access))


def _models(fleet: ResolvedFleet, config: Config, agent: ResolvedAgent, definitions: Definitions) -> Iterator[str]:
    """Yield the models that are called outside of the fleet."""
    own = any(peer in fleet.services and fleet.services[peer].provides == "openai" for peer in agent.depends_on)
    written = [definition.model for definition in definitions.agents if definition.kind not in _NO_MODEL]
    for model in written or ([] if definitions.agents else [""]):
        text = config.default_model if model == "" else model
        if text is None:
            yield "(known only when it starts)"
        elif text and providers.split(text)[0] not in providers.OFFLINE and not (own and _is_openai(text)):
            yield text


def _is_openai(model: str) -> bool:
    """Return whether a service of the fleet may stand in for the provider; of a bare name nobody knows here."""
    provider = providers.find(providers.split(model)[0])
    return not providers.split(model)[0] or (
        provider is not None and provider.url_variable == names.ENV_OPENAI_BASE_URL
    )


def _servers(fleet: ResolvedFleet, config: Config, definitions: Definitions) -> Iterator[str]:
    outside = {name: url for name, url in config.servers.items() if url and _is_outside(fleet, name, url)}
    why = _unclear(definitions)
    if not why:
        outside = {name: url for name, url in outside.items() if name in definitions.servers}
    elif outside:
        yield f"all servers of the configuration count, because {why}"
    yield from (f"its server `{name}` ({_origin(url)})" for name, url in sorted(outside.items()))
    urls = sorted({url for definition in definitions.agents for url in definition.urls})
    yield from (f"its card names {_origin(url)}" for url in urls if _is_outside(fleet, "", url))


def _is_outside(fleet: ResolvedFleet, name: str, url: str) -> bool:
    host = _host(url)
    return not fleet.is_member(name) and host not in names.LOCAL_HOSTS and host not in fleet.slugs


def _unclear(definitions: Definitions) -> str:
    """Return why the servers are not known, empty where they are."""
    if definitions.unclear:
        first = min(definitions.unclear)
        return f"{first.where}: {first.message}" if first.where.line else f"{first.where} {first.message}"
    return "" if definitions.agents else "its module defines no agent where that can be read"


def keys(access: Access) -> Iterator[str]:
    """Yield the reason that lies in the keys of an issuer, where they are to be fetched."""
    jwt = access.jwt
    if jwt is not None and jwt.jwks_url is not None:
        yield f"the keys of its callers' tokens ({_origin(jwt.jwks_url)})"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _origin(url: str) -> str:
    """Return scheme, host and port of a URL: the rest of it may be a secret."""
    if VARIABLE.search(url) or not _host(url):
        return "a URL known only when it starts"
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
